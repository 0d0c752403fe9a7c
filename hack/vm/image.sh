#!/bin/sh
# Builds the machine of `make test-vm` and prints its directory: a Debian of its own with
# kernel, systemd and containerd, as a disk image that run.sh boots. What was built is kept
# by the sum of this recipe.
#
# usage: image.sh DIRECTORY
set -eu

packages=systemd,systemd-sysv,dbus,udev,kmod,linux-image-amd64,containerd,runc,crun
packages=$packages,containernetworking-plugins,iproute2,iptables,nftables,apparmor,procps,logrotate

key=$(sha256sum <"$0")
machine=$1/$(printf %.12s "$key")
if [ -e "$machine/root.ext4" ]; then
	echo "$machine"
	exit
fi
mkdir -p "$machine"
# Another call may build the same machine.
exec 9>"$machine/lock"
flock 9
if [ -e "$machine/root.ext4" ]; then
	echo "$machine"
	exit
fi
root=$machine/tree
began=$(date +%s)

# units runs systemctl of the image: this machine may have none.
units() {
	SYSTEMD_OFFLINE=1 chroot "$root" systemctl --quiet "$@"
}

# guest_files makes the machine run what it finds in the directory shared with it.
guest_files() {
	echo vm >"$root/etc/hostname"
	echo "127.0.0.1 localhost vm" >"$root/etc/hosts"
	echo "nameserver 10.0.2.3" >"$root/etc/resolv.conf"
	cat >"$root/etc/systemd/network/10-vm.network" <<-END
		[Match]
		Type=ether
		Driver=virtio_net
		[Network]
		Address=10.0.2.15/24
		Gateway=10.0.2.2
	END
	cat >"$root/etc/systemd/system/share.service" <<-END
		[Unit]
		Description=Run what the shared directory says
		After=multi-user.target containerd.service
		[Service]
		Type=oneshot
		ExecStartPre=mkdir -p /mnt/share
		ExecStartPre=mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 share /mnt/share
		ExecStart=sh /mnt/share/guest.sh
		TimeoutStartSec=infinity
		[Install]
		WantedBy=multi-user.target
	END
	mkdir -p "$root/etc/systemd/system.conf.d"
	# Beside other work, an emulated machine may start a unit in minutes.
	cat >"$root/etc/systemd/system.conf.d/slow.conf" <<-END
		[Manager]
		DefaultTimeoutStartSec=1h
		DefaultDeviceTimeoutSec=1h
	END
	units enable share.service systemd-networkd.service
	units mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
		e2scrub_all.timer e2scrub_reap.service fstrim.timer man-db.timer logrotate.timer \
		systemd-networkd-wait-online.service getty@tty1.service serial-getty@ttyS0.service
}

{
	echo "building the image of an emulated Debian 13 (about 3 minutes)"
	rm -rf --one-file-system "$root"
	mmdebstrap --quiet --variant=minbase --include="$packages" \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' trixie "$root"
	guest_files
	cp "$root"/boot/vmlinuz-* "$machine/kernel"
	cp "$root"/boot/initrd.img-* "$machine/initrd"
	rm -f "$machine/root.part"
	mke2fs -q -t ext4 -d "$root" "$machine/root.part" 6G
	rm -rf --one-file-system "$root"
	mv "$machine/root.part" "$machine/root.ext4"
	echo "the machine was built in $(($(date +%s) - began)) s"
} >&2
echo "$machine"
