// Package grpcapi serves the local gRPC APIs of a kubelet, with its rate limits, from the pods of an agent.
package grpcapi
