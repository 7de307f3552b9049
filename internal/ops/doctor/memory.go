package doctor

import (
	"fmt"
	"strconv"
)

// judgeMemory looks at what Redis does when memory is short.
func judgeMemory(f *Facts) []Finding {
	const check = "memory"
	policy, limit := f.Server.Info["maxmemory_policy"], number(f.Server.Info["maxmemory"])
	used := number(f.Server.Info["used_memory"])
	const nearly = 0.8
	switch {
	case policy == "":
		return unknown(check, "memory policy", "INFO")
	case policy != "noeviction":
		return fail(check, "maxmemory-policy is "+policy+": Redis deletes tasks when memory is short",
			"CONFIG SET maxmemory-policy noeviction, also in redis.conf")
	case limit == 0:
		return warn(check, "maxmemory is not set: the kernel ends Redis when the host has no memory left",
			"set maxmemory to about 70 % of what the host can spare")
	case used > nearly*limit:
		return warn(check, fmt.Sprintf("%.0f of %.0f MiB are used; at the limit Redis refuses every change", used/mib, limit/mib),
			"raise maxmemory, or archive and delete what is not needed any more")
	default:
		return append(ok(check, fmt.Sprintf("noeviction, %.0f of %.0f MiB used", used/mib, limit/mib)), judgePacking(f)...)
	}
}

// packedValue is the longest value in a packed hash, as configs/redis.conf has it.
const packedValue = 1024

// judgePacking looks whether Redis keeps tasks packed, which saves memory and costs nothing. It has nothing to say where
// Redis does not tell: an access list forbids that, which other findings say, or it is older than 7.0.
func judgePacking(f *Facts) []Finding {
	const setting = "hash-max-listpack-value"
	if text := f.Server.Settings[setting]; text != "" && number(text) < packedValue {
		return warn("memory", setting+" is "+text+": tasks take about twice the memory they need",
			fmt.Sprintf("CONFIG SET %s %d, also in redis.conf (see configs/redis.conf)", setting, packedValue))
	}
	return nil
}

const mib = 1 << 20

// number reads a number of INFO; what is none is 0.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
