package disk

import "fmt"

// FullError says that a file system has less free space than the reserve.
type FullError struct {
	// Path lies on the file system.
	Path string
	// Free and Reserve are in bytes.
	Free, Reserve uint64
}

// Error names path, free space, reserve and the setting.
func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of '%s' has %s free, less than the reserve of %s: "+
		"make room, or lower [worker] disk_reserve", e.Path, sizeText(e.Free), sizeText(e.Reserve))
}

// sizeText writes a size for people, with one decimal above 1 KiB.
func sizeText(n uint64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < 3 {
		size, unit = size/step, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}
