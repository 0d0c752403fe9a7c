// Package image has the commands for images: podctl image ls, pull, load, save, inspect, tag, rm and prune.
package image
