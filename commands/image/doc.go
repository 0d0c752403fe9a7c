// Package image has the commands on images: podctl image ls, pull, load, save, rm and prune.
package image
