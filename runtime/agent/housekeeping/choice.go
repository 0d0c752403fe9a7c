package housekeeping

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Thresholds say when images go, in percent of their disk that is used.
type Thresholds struct {
	// High is the usage at which images go, Low that down to which they do.
	High, Low int
}

// never is the high threshold with which images do not go at all (kubelet: StartGarbageCollection).
const never = 100

// Check says what is wrong with the thresholds (kubelet: NewImageGCManager).
func (t Thresholds) Check() error {
	switch {
	case t.High < 0 || t.High > 100:
		return fmt.Errorf("the high threshold of images is %d: it must be between 0 and 100 percent", t.High)
	case t.Low < 0 || t.Low > 100:
		return fmt.Errorf("the low threshold of images is %d: it must be between 0 and 100 percent", t.Low)
	case t.Low > t.High:
		return fmt.Errorf("the low threshold of images, %d percent, is higher than the high one, %d percent", t.Low, t.High)
	}
	return nil
}

// minAge is the age below which no image goes: it may have been pulled for a container that is about
// to be created (kubelet: ImageMinimumGCAge).
const minAge = 2 * time.Minute

// usage is how full the disk of images is.
type usage struct{ Capacity, Available int64 }

// errNoCapacity says that a disk has no size.
var errNoCapacity = errors.New("the disk of images has a capacity of 0 bytes")

// excess is how many bytes have to go; zero where the usage is below the high threshold (kubelet: GarbageCollect).
func (t Thresholds) excess(u usage) (int64, error) {
	if u.Capacity <= 0 {
		return 0, errNoCapacity
	}
	if u.percent() < t.High {
		return 0, nil
	}
	return max(u.Capacity*int64(100-t.Low)/100-min(u.Available, u.Capacity), 0), nil
}

// percent is how much of the disk is used, rounded up.
func (u usage) percent() int { return 100 - int(min(u.Available, u.Capacity)*100/u.Capacity) }

// image is what there is to know of an image.
type image struct {
	ID   string
	Size int64
	// Used is set while something needs the image, Removable unless it has to stay whoever needs it.
	Used, Removable bool
}

// imageRecord is what is remembered of an image: since when it is known, and when it was last needed.
type imageRecord struct{ first, used time.Time }

// imageRecords are those of all images, by id, between two looks.
type imageRecords map[string]imageRecord

// see takes note of the images that there are (kubelet: detectImages).
func (a imageRecords) see(now time.Time, images []image) {
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

// order is which images can go, the least recently used first; of those that were used last at the
// same time, the one that has been there for longer (kubelet: imagesInEvictionOrder).
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

// free removes images in their order until so many bytes are free, and returns how many were freed.
// One that cannot be removed keeps no other (kubelet: freeSpace).
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
