// Package certificates keeps the certificate of a node for one use: for its requests to the API server, or for its own
// server.
//
// The inputs are a directory, the name and the addresses of the Node, and a configuration with which certificates can
// be requested. The result is a Rotation: the newest certificate, and the state of the request for the next one.
//
// client-go's util/certificate creates the keys, requests the certificates, and writes the files, as in a kubelet. This
// package checks each certificate before it is stored, keeps the reason why one is missing, and notices when the clock
// is set. It decides nothing about pods and connections. Only the program podctl-node links it.
package certificates
