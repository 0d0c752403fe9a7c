package image

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

func newList(sess *session.Session) *cobra.Command {
	v := &imageView{}
	cmd := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List images and the pods that use them",
		Long: "List the images of the runtime and the pods that use them. " +
			"These are pods with a container from the image, running or\nnot, " +
			"and applied pods whose manifest names the image." +
			flags.ExitCodes("0 success", "1 error"),
		Example: "  podctl image ls\n" +
			"  podctl image ls --digests\n" +
			"  podctl image ls -o json | jq '.items[] | select(.usedBy == null)'",
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, images, err := list(cmd.Context(), sess)
			if err != nil {
				return err
			}
			return v.write(sess.IO.Out, images)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&v.digests, "digests", false, "Show full digests")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "Print only IDs")
	f.VarP(flags.Output(&v.output, "json", "yaml", "name"), "output", "o", "Output format: text, json, yaml or name")
	return cmd
}

// imageView writes images, with a line for each name.
type imageView struct {
	output  string
	digests bool
	quiet   bool
}

func (v *imageView) write(w io.Writer, found []*images.Image) error {
	switch {
	case terminal.IsDocument(v.output):
		return terminal.WriteDocument(w, v.output, view.List("ImageList", found))
	case v.output == "name":
		return writeLines(w, found, (*images.Image).Name)
	case v.quiet:
		return writeLines(w, found, func(img *images.Image) string { return img.ID })
	}
	var rows [][]string
	for _, img := range found {
		rows = append(rows, v.rows(img)...)
	}
	return table.Write(w, []string{"REPOSITORY", "TAG", "DIGEST", "IMAGE ID", "SIZE", "USED BY"}, rows)
}

func writeLines(w io.Writer, found []*images.Image, line func(*images.Image) string) error {
	for _, img := range found {
		if _, err := fmt.Fprintln(w, terminal.PrintableLine(line(img))); err != nil {
			return err
		}
	}
	return nil
}

// rows returns the lines of one image: one for each tag with its digest, and one for each digest of a repository
// without a tag.
func (v *imageView) rows(img *images.Image) [][]string {
	digests := map[string]string{}
	for _, name := range img.Digests {
		repository, _, digest := images.Parts(name)
		digests[repository] = digest
	}
	var rows [][]string
	tagged := map[string]bool{}
	for _, name := range img.Tags {
		repository, tag, _ := images.Parts(name)
		tagged[repository] = true
		rows = append(rows, v.row(img, cmp.Or(repository, name), tag, digests[repository]))
	}
	for _, name := range img.Digests {
		if repository, _, digest := images.Parts(name); !tagged[repository] {
			rows = append(rows, v.row(img, repository, "", digest))
		}
	}
	if rows == nil {
		rows = append(rows, v.row(img, "", "", ""))
	}
	return rows
}

func (v *imageView) row(img *images.Image, repository, tag, digest string) []string {
	if !v.digests {
		digest = shortDigest(digest)
	}
	id := model.ShortID(strings.TrimPrefix(img.ID, "sha256:"))
	return []string{
		cmp.Or(repository, table.NoValue),
		cmp.Or(tag, table.NoValue),
		cmp.Or(digest, table.NoValue),
		id,
		view.Size(int64(img.Size)),
		usersText(img),
	}
}

// usersText returns the first user of an image, and the number of other users.
func usersText(img *images.Image) string {
	var users []string
	for _, user := range img.UsedBy {
		users = append(users, user.Pod.String())
	}
	for _, pod := range img.NamedBy {
		users = append(users, pod.String())
	}
	slices.Sort(users)
	users = slices.Compact(users)
	if img.Pinned {
		users = slices.Insert(users, 0, "the runtime")
	}
	switch len(users) {
	case 0:
		return "-"
	case 1:
		return users[0]
	}
	return fmt.Sprintf("%s +%d", users[0], len(users)-1)
}

// shortDigest shortens a digest and keeps the name of its algorithm.
func shortDigest(digest string) string {
	algorithm, digits, found := strings.Cut(digest, ":")
	if !found {
		return model.ShortID(digest)
	}
	return algorithm + ":" + model.ShortID(digits)
}
