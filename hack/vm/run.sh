#!/bin/sh
# Boots the machine that image.sh built, runs a command in it as root and returns its exit
# code. The directory SHARE is /mnt/share there, and where the command runs. What it writes
# to the disk of the machine is gone with it. QEMU needs no help of the hardware. A command
# that exits with 77 is run again after a reboot.
#
# usage: run.sh MACHINE SHARE SECONDS COMMAND [ARGUMENT...]
set -eu

machine=$1 share=$2 seconds=$3
shift 3
for file in kernel initrd root.ext4; do
	[ -s "$machine/$file" ] || {
		echo "run.sh: the machine has no $machine/$file; image.sh builds it" >&2
		exit 1
	}
done

quoted=
for word in "$@"; do
	quoted="$quoted '$(printf %s "$word" | sed "s/'/'\\\\''/g")'"
done
cat >"$share/guest.sh" <<END
{
	echo "booted in \$(cut -d. -f1 /proc/uptime) s: \$(uname -r), \$(stat -fc %T /sys/fs/cgroup), \$(containerd --version | cut -d' ' -f3)"
	journalctl --no-pager -b -o short-monotonic >/mnt/share/boot.log
	cd /mnt/share && (exec $quoted)
	echo \$? >/mnt/share/exit
} >/dev/\$(cd /sys/class/virtio-ports && grep -lx out */name | cut -d/ -f1) 2>&1
[ "\$(cat /mnt/share/exit)" = 77 ] && exec systemctl --no-block reboot
systemctl --no-block poweroff
END
rm -f "$share/exit"

# Loading a driver for each of the machine's devices takes half a minute. These are all it needs.
drivers="systemd.mask=systemd-udev-trigger.service modules_load=virtio_net,virtio_console,9pnet_virtio"

# accel=tcg: hardware help is offered by some machines and does not work on all.
code=0
timeout --kill-after=10 "$seconds" qemu-system-x86_64 \
	-accel tcg,thread=multi -cpu max -m 4096 -smp 2 -display none -monitor none \
	-kernel "$machine/kernel" -initrd "$machine/initrd" -append "root=/dev/vda rw console=ttyS0 quiet mitigations=off $drivers" \
	-drive "file=$machine/root.ext4,format=raw,if=virtio,snapshot=on" \
	-virtfs "local,path=$share,mount_tag=share,security_model=none" \
	-nic user,restrict=on,model=virtio-net-pci \
	-serial "file:$share/console.log" \
	-device virtio-serial -chardev file,id=out,path=/dev/stdout,append=on -device virtserialport,chardev=out,name=out \
	</dev/null || code=$?

if [ "$code" = 124 ]; then
	echo "run.sh: the machine did not end within $seconds s; its console is in $share/console.log" >&2
	exit 124
fi
if [ ! -s "$share/exit" ]; then
	echo "run.sh: the machine ended without running the command; its console is in $share/console.log" >&2
	exit 125
fi
exit "$(cat "$share/exit")"
