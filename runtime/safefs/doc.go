// Package safefs works on files whose paths may be changed by another user of the machine, or by a container with a
// mounted directory. The input is a path or a name. The result is an open file or directory, which is the one that was
// checked, or an error that names who could have replaced it. The package does not know pods or contents of files.
//
// A single walker walks all paths element by element on descriptors. Only the policy for symbolic links differs:
//
//   - OpenDir and MakeAll follow links of root and of the user of this process. OpenTrustedDir also checks each
//     directory on the way.
//   - Dir.Sub and Dir.MakeSub start at an open directory and follow no links.
//   - OpenDirNoLinks and OpenFileNoLinks follow no links in the elements that belong to one pod. Above them they follow
//     only links that no other user can have created.
//   - OpenTrusted, Create and the checks follow links like OpenDir, and also those of /proc, such as /dev/stdout. They
//     check owner and mode of the file.
//
// A Dir is an open directory. It guarantees:
//
//   - A name passed to one of its methods is a single element of a path. Other names are refused with ErrName, and
//     nothing is changed.
//   - No method follows a symbolic link with that name, or waits for a pipe or a device.
//   - Files are opened, created, renamed or removed in that very directory, even if its path leads elsewhere by now.
//   - New files have their mode from the first moment, with any umask: setting it later would need a name, and another
//     process may have replaced the file. Chmod, Give and SetFileGroup change the opened file.
//
// The caller checks mode, owner and group of the files in a Dir (Stat, Foreign).
//
// Other libraries do not replace this. SecureJoin of filepath-securejoin, which is linked anyway, returns a path, and
// its pathrs-lite resolves links within a root. Neither checks the owner of a link, which is decisive here. os.Root
// also follows all links within a root. Use it for directories that only podctl changes (OpenRoot, Dir.Root).
package safefs
