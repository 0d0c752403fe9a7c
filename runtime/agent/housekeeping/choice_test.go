package housekeeping

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sight is the list of images at a time. In "a b*", a is unused and b is used.
type sight struct {
	at     time.Duration
	images string
}

// imagesOf parses a list of images of 1024 bytes each. A star marks a used image, an exclamation mark one that must
// stay.
func imagesOf(text string) []image {
	var all []image
	for word := range strings.FieldsSeq(text) {
		id := strings.TrimRight(word, "*!")
		all = append(all, image{ID: id, Size: 1024, Used: strings.Contains(word, "*"), Removable: !strings.Contains(word, "!")})
	}
	return all
}

// TestImages covers the rules of these tests of the kubelet's pkg/kubelet/images/image_gc_manager_test.go:
//
// TestDetectImagesInitialDetect, TestDetectImagesWithNewImage, TestDetectImagesContainerStopped,
// TestDetectImagesWithRemovedImages, TestDeleteUnusedImagesExemptSandboxImage, TestDeletePinnedImage,
// TestDoNotDeletePinnedImage, TestDeleteUnPinnedImage, TestAllPinnedImages,
// TestFreeSpaceImagesInUseContainersAreIgnored, TestDeleteUnusedImagesRemoveAllUnusedImages,
// TestDeleteUnusedImagesLimitByImageLiveTime, TestFreeSpaceRemoveByLeastRecentlyUsed,
// TestFreeSpaceTiesBrokenByDetectedTime, TestGarbageCollectImageNotOldEnough
//
// TestThresholds and TestFree cover the others. TestGarbageCollectImageTooOld and TestGarbageCollectImageMaxAgeDisabled
// have no counterpart: images are not removed because of their age alone.
func TestImages(t *testing.T) {
	const m = time.Minute
	for name, c := range map[string]struct {
		before []sight
		at     time.Duration
		images string
		want   string
	}{
		"unused ones go, the older first":              {[]sight{{0, "a"}, {m, "a b"}}, 10 * m, "b a", "a b"},
		"those in use stay":                            {[]sight{{0, "a b"}}, 10 * m, "a* b", "b"},
		"pinned ones, and others', stay":               {[]sight{{0, "a! b"}}, 10 * m, "a! b", "b"},
		"all are pinned":                               {[]sight{{0, "a! b!"}}, 10 * m, "a! b!", ""},
		"one that is not pinned any more goes":         {[]sight{{0, "a!"}}, 10 * m, "a", "a"},
		"the least recently used goes first":           {[]sight{{0, "a* b"}, {5 * m, "a b*"}}, 10 * m, "b a", "a b"},
		"never used comes before used":                 {[]sight{{0, "b*"}, {5 * m, "a b"}}, 10 * m, "a b", "a b"},
		"of those used at the same time, the older":    {[]sight{{0, "b"}, {5 * m, "a* b*"}}, 10 * m, "a b", "b a"},
		"used at the same time, known for as long":     {[]sight{{0, "b* a*"}}, 10 * m, "b a", "a b"},
		"one that came just now stays":                 {[]sight{{0, "a"}}, 10 * m, "a b", "a"},
		"one that came 2 minutes ago goes":             {[]sight{{8 * m, "a"}}, 10 * m, "a", "a"},
		"a little later it stays":                      {[]sight{{8*m + 1, "a"}}, 10 * m, "a", ""},
		"the container of one has ended":               {[]sight{{0, "a*"}}, 10 * m, "a", "a"},
		"one that was gone and came back is new again": {[]sight{{0, "a"}, {5 * m, ""}}, 10 * m, "a", ""},
		"the first check removes none":                 {nil, 0, "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := imageRecords{}
			for _, s := range append(c.before, sight{c.at, c.images}) {
				r.record(at(s.at), imagesOf(s.images))
			}
			var got []string
			for _, img := range r.order(at(c.at), minAge, imagesOf(c.images)) {
				got = append(got, img.ID)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%q go, want %q", text, c.want)
			}
		})
	}
}

// TestThresholds covers the kubelet's TestGarbageCollectBelowLowThreshold, TestGarbageCollectBelowSuccess,
// TestGarbageCollectNotEnoughFreed and TestGarbageCollectCadvisorFailure.
func TestThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		high, low           int
		capacity, available int64
		want                int64
		fails               bool
	}{
		"below the low one":               {90, 80, 1000, 600, 0, false},
		"between the two":                 {90, 80, 1000, 110, 0, false},
		"at the high one":                 {90, 80, 1000, 100, 100, false},
		"a part of a percent counts":      {90, 80, 1000, 109, 91, false},
		"above it":                        {90, 80, 1000, 0, 200, false},
		"more available than there is":    {85, 80, 1000, 2000, 0, false},
		"both are the same":               {80, 80, 1000, 200, 0, false},
		"no capacity":                     {85, 80, 0, 0, 0, true},
		"a disk of many petabytes":        {85, 80, 90 << 50, 0, 18 << 50, false},
		"none is used, and any is enough": {0, 0, 1000, 1000, 0, false},
	} {
		got, err := Thresholds{High: c.high, Low: c.low}.excess(usage{c.capacity, c.available})
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %d bytes %v, want %d", name, got, err, c.want)
		}
	}
}

// TestThresholdsAreChecked is the kubelet's TestValidateImageGCPolicy.
func TestThresholdsAreChecked(t *testing.T) {
	for _, c := range []struct {
		high, low int
		fails     bool
	}{
		{100, 0, false}, {85, 80, false}, {80, 80, false}, {-1, 0, true}, {101, 0, true}, {85, -1, true}, {85, 101, true}, {2, 3, true},
	} {
		if err := (Thresholds{High: c.high, Low: c.low}).Check(); (err != nil) != c.fails {
			t.Errorf("%d and %d: %v", c.high, c.low, err)
		}
	}
	for _, c := range []struct {
		minimum, maximum time.Duration
		fails            bool
	}{
		{0, 0, false},
		{time.Minute, 0, false},
		{time.Minute, time.Hour, false},
		{0, 1, false},
		{time.Minute, time.Minute, true},
		{-1, 0, true},
		{0, -1, true},
	} {
		if err := (Thresholds{High: 85, MinAge: c.minimum, MaxAge: c.maximum}).Check(); (err != nil) != c.fails {
			t.Errorf("%v and %v: %v", c.minimum, c.maximum, err)
		}
	}
}

// TestFree checks that no more images are removed than needed, and that removal continues after an image that cannot be
// removed.
func TestFree(t *testing.T) {
	busy := errors.New("busy")
	for name, c := range map[string]struct {
		bytes int64
		want  string
		freed int64
	}{
		"nothing":       {0, "", 0},
		"a little":      {1, "a", 1024},
		"one":           {1024, "a", 1024},
		"more than one": {1025, "a b c", 2048},
		"all":           {1 << 40, "a b c d", 3072},
	} {
		var got []string
		freed, err := free(imagesOf("a b c d"), c.bytes, func(img image) error {
			got = append(got, img.ID)
			if img.ID == "b" {
				return busy
			}
			return nil
		})
		if text := strings.Join(got, " "); text != c.want || freed != c.freed || errors.Is(err, busy) != strings.Contains(text, "b") {
			t.Errorf("%s: %q go, %d bytes, %v; want %q and %d", name, text, freed, err, c.want, c.freed)
		}
	}
}

// TestRandomImages checks with random images that no image is removed that is used, must stay or is new. The least
// recently used images go first, and no more go than are needed.
func TestRandomImages(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		r, now := imageRecords{}, at(0)
		came := map[string]time.Time{}
		for range 40 {
			now = now.Add(time.Duration(random.IntN(150)) * time.Second)
			var all []image
			for id := range 12 {
				img := image{
					ID:        strconv.Itoa(id),
					Size:      int64(1 + random.IntN(100)),
					Used:      random.IntN(4) == 0,
					Removable: random.IntN(4) > 0,
				}
				if random.IntN(8) == 0 {
					delete(came, img.ID)
					continue
				}
				if _, known := came[img.ID]; !known {
					came[img.ID] = now
				}
				all = append(all, img)
			}
			r.record(now, all)
			checkOrder(t, r, all, now, came)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func checkOrder(t *testing.T, r imageRecords, all []image, now time.Time, came map[string]time.Time) {
	t.Helper()
	order := r.order(now, minAge, all)
	for i, img := range order {
		if img.Used || !img.Removable || now.Sub(came[img.ID]) < 2*time.Minute {
			t.Errorf("%+v goes", img)
		}
		if i > 0 && r[img.ID].used.Before(r[order[i-1].ID].used) {
			t.Errorf("%s goes before %s, which was used longer ago", order[i-1].ID, img.ID)
		}
	}
	for _, img := range all {
		stays := img.Used || !img.Removable || now.Sub(came[img.ID]) < 2*time.Minute
		if !stays && !slices.ContainsFunc(order, func(one image) bool { return one.ID == img.ID }) {
			t.Errorf("%+v does not go", img)
		}
	}
	need := int64(150)
	last := int64(0)
	freed, _ := free(order, need, func(img image) error { last = img.Size; return nil })
	if freed-last >= need {
		t.Errorf("%d bytes were freed for %d, the last image has %d", freed, need, last)
	}
}
