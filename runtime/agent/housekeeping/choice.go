package housekeeping

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Thresholds control when images are removed.
type Thresholds struct {
	// Images are removed at a disk usage of High percent, until the usage is down to Low percent.
	High, Low int
	// MinAge is the minimum age of an image that is removed. A younger image may have been pulled for a container that
	// is about to be created (kubelet: ImageMinimumGCAge).
	MinAge time.Duration
	// MaxAge is how long an image stays that no pod uses, even if the disk is not full; 0 for no limit (kubelet:
	// ImageMaximumGCAge).
	MaxAge time.Duration
}

// never reports whether no image is ever removed (kubelet: StartGarbageCollection).
func (t Thresholds) never() bool { return t.High == 100 && t.MaxAge == 0 }

// Check returns an error if the thresholds are invalid (kubelet: NewImageGCManager, ValidateKubeletConfiguration).
func (t Thresholds) Check() error {
	switch {
	case t.High < 0 || t.High > 100:
		return fmt.Errorf("the high threshold of images is %d: it must be between 0 and 100 percent", t.High)
	case t.Low < 0 || t.Low > 100:
		return fmt.Errorf("the low threshold of images is %d: it must be between 0 and 100 percent", t.Low)
	case t.Low > t.High:
		return fmt.Errorf(
			"the low threshold of images, %d percent, is higher than the high one, %d percent", t.Low, t.High)
	case t.MinAge < 0 || t.MaxAge < 0:
		return fmt.Errorf("the ages of images are %v and %v: they must not be negative", t.MinAge, t.MaxAge)
	case t.MaxAge != 0 && t.MaxAge <= t.MinAge:
		return fmt.Errorf("the maximum age of unused images is %v: it must be 0, or higher than the minimum age, %v",
			t.MaxAge, t.MinAge)
	}
	return nil
}

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
func (a imageRecords) order(now time.Time, minAge time.Duration, images []image) []image {
	can := slices.DeleteFunc(slices.Clone(images), func(img image) bool {
		return img.Used || !img.Removable || now.Sub(a[img.ID].first) < minAge
	})
	slices.SortStableFunc(can, func(x, y image) int {
		one, other := a[x.ID], a[y.ID]
		return cmp.Or(one.used.Compare(other.used), one.first.Compare(other.first), cmp.Compare(x.ID, y.ID))
	})
	return can
}

// old returns the images that no pod has used for longer than an age (kubelet: freeOldImages). For an image that no pod
// has used since the agent has first seen it, the time begins then. A kubelet removes such an image already at the
// minimum age, unless it has just started.
func (a imageRecords) old(now time.Time, maxAge time.Duration, images []image) []image {
	return slices.DeleteFunc(slices.Clone(images), func(img image) bool {
		r := a[img.ID]
		return now.Sub(r.first) <= maxAge || now.Sub(r.used) <= maxAge
	})
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
