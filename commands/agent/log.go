package agent

import (
	"context"
	"log/slog"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
)

// newLog returns a logger that writes to stderr, as text or as JSON.
func newLog(sess *session.Session) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if sess.Flags.Verbose {
		options.Level = slog.LevelDebug
	}
	var h slog.Handler = slog.NewTextHandler(sess.IO.Err, options)
	if sess.Flags.LogFormat == "json" {
		h = slog.NewJSONHandler(sess.IO.Err, options)
	}
	return slog.New(&redacting{Handler: h, sess: sess})
}

// redacting removes values of Secrets from warnings and errors. Errors from outside of a pass are not redacted
// elsewhere.
type redacting struct {
	slog.Handler
	sess *session.Session
}

// Handle writes one record.
func (r *redacting) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn {
		return r.Handler.Handle(ctx, record)
	}
	r.sess.RefreshRedactor()
	redactor := r.sess.Redactor()
	clean := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(slog.String(a.Key, terminal.PrintableLines(redactor.Text(a.Value.String()))))
		return true
	})
	return r.Handler.Handle(ctx, clean)
}
