// Package safefs works on files where somebody else can change what a path leads to: another
// user of the machine, or a container that has a directory mounted. What comes in is a path or
// a name; what goes out is an open file or directory, which is the very one that was looked at,
// or an error that says who could have put another one there. The package knows nothing of pods
// and of what files hold.
//
// All paths are walked by one walker, an element at a time, on descriptors. What differs is the
// policy, that is, which symbolic links are followed:
//
//   - OpenDir and MakeAll follow links of root and of the user of this process. OpenTrustedDir also checks each directory on
//     the way.
//   - Dir.Sub and Dir.MakeSub begin at an open directory and follow none.
//   - OpenDirNoLinks and OpenFileNoLinks follow none in the elements that belong to one pod, and
//     above them only those that nobody else can have made.
//   - OpenTrusted, Create and the checks follow links as OpenDir does, and those of /proc, as
//     /dev/stdout is one. They look at owner and mode of what is found.
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
// Mode, owner and group of what a Dir holds are the caller's to look at (Stat, Foreign).
//
// The libraries do not replace this. The SecureJoin of filepath-securejoin, which is linked
// anyway, returns a path, and its pathrs-lite resolves links within a root: neither asks whose
// link it is, which is what decides here. os.Root follows all links within a root as well. It is for what lies in a directory
// that only podctl changes (OpenRoot, Dir.Root).
package safefs
