// Package safefs makes, opens, renames and removes files in directories that somebody
// else may change at the same time: another user of the machine, or a container that has
// the directory mounted.
//
// A Dir is an open directory. What it promises:
//
//   - A name given to one of its methods is a single element of a path. Anything else is
//     refused with ErrName, and nothing is changed.
//   - No method follows a symbolic link in the place of that name, and none waits for a
//     pipe or a device.
//   - What is opened, made, renamed or removed lies in that very directory, whatever its
//     path leads to by now.
//   - What is made has its mode from the first moment, under any umask: to set it afterwards
//     would need a name, and somebody may have put something else in its place. Chmod, Give
//     and GiveFile change what was opened.
//
// Open and MakeAll come from a path to a Dir. They follow a symbolic link only if it
// belongs to root or to the user of this process.
//
// Mode, owner and group of what a Dir holds are the caller's to look at (Stat).
package safefs
