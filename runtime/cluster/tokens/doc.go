// Package tokens requests the tokens of service accounts for volumes of pods (kubelet: package token).
//
// The input is a pod of the API server and the current token. The output is each new token, as a Secret. A token is
// bound to the name and the uid of its pod. It is renewed at 80 % of its life, or after 24 hours if that is earlier,
// and up to ten seconds before. The package keeps nothing and writes no files. Its caller keeps the current token,
// which stays in use until the API server has issued the next one, also after its end: a process that was not restarted
// would have it, too. Messages never have a token.
package tokens
