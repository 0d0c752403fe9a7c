package housekeeping

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Thresholds control when images are removed, in percent of disk usage.
type Thresholds struct {
	// Images are removed at a usage of High, until the usage is down to Low.
	High, Low int
}

// never is the high threshold that turns off the removal of images (kubelet: StartGarbageCollection).
const never = 100

// Check returns an error if the thresholds are invalid (kubelet: NewImageGCManager).
func (t Thresholds) Check() error {
	switch {
	case t.High < 0 || t.High > 100:
		return fmt.Errorf("the high threshold of images is %d: it must be between 0 and 100 percent", t.High)
	case t.Low < 0 || t.Low > 100:
		return fmt.Errorf("the low threshold of images is %d: it must be between 0 and 100 percent", t.Low)
	case t.Low > t.High:
		return fmt.Errorf(
			"the low threshold of images, %d percent, is higher than the high one, %d percent", t.Low, t.High)
	}
	return nil
}

// minAge is the minimum age of an image that is removed. A younger image may have been pulled for a container that is
// about to be created (kubelet: ImageMinimumGCAge).
const minAge = 2 * time.Minute

// usage is the usage of the image disk, in bytes.
type usage struct{ Capacity, Available int64 }

// errNoCapacity reports a disk without a size.
var errNoCapacity = errors.New("the image disk has a capacity of 0 bytes")

// excess returns how many bytes must be freed. It is zero if the usage is below the high threshold (kubelet:
// GarbageCollect).
func (t Thresholds) excess(u usage) (int64, error) {
	if u.Capacity <= 0 {
		return 0, errNoCapacity
	}
	if u.percent() < t.High {
		return 0, nil
	}
	return max(u.Capacity*int64(100-t.Low)/100-min(u.Available, u.Capacity), 0), nil
}

// percent returns the disk usage, rounded up.
func (u usage) percent() int { return 100 - int(min(u.Available, u.Capacity)*100/u.Capacity) }

// image is an image on the disk.
type image struct {
	ID   string
	Size int64
	// Used is set while a pod or container needs the image. Removable is unset if the image must stay even when unused.
	Used, Removable bool
}

// imageRecord holds when an image was first seen and when it was last used.
type imageRecord struct{ first, used time.Time }

// imageRecords holds the records of all images by ID.
type imageRecords map[string]imageRecord

// record updates the records from the present images (kubelet: detectImages).
func (a imageRecords) record(now time.Time, images []image) {
	there := map[string]bool{}
	for i := range images {
		img := &images[i]
		there[img.ID] = true
		r, known := a[img.ID]
		if !known {
			r.first = now
		}
		if img.Used {
			r.used = now
		}
		a[img.ID] = r
	}
	for id := range a {
		if !there[id] {
			delete(a, id)
		}
	}
}

// order returns the images that can be removed, the least recently used first. For equal times, the image that was seen
// first comes first (kubelet: imagesInEvictionOrder).
func (a imageRecords) order(now time.Time, images []image) []image {
	can := slices.DeleteFunc(slices.Clone(images), func(img image) bool {
		return img.Used || !img.Removable || now.Sub(a[img.ID].first) < minAge
	})
	slices.SortStableFunc(can, func(x, y image) int {
		one, other := a[x.ID], a[y.ID]
		return cmp.Or(one.used.Compare(other.used), one.first.Compare(other.first), cmp.Compare(x.ID, y.ID))
	})
	return can
}

// free removes images in order until the given number of bytes is free, and returns how many were freed. It continues
// after an image that cannot be removed (kubelet: freeSpace).
func free(order []image, bytes int64, remove func(image) error) (freed int64, failed error) {
	for _, img := range order {
		if freed >= bytes {
			break
		}
		if err := remove(img); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		freed += img.Size
	}
	return freed, failed
}
