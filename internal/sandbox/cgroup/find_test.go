//nolint:dupword // that is how the kernel writes it
package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hybridMounts = `25 31 0:29 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:10 master:3 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`

func TestLocate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cgroups, mounts string
		want            location
	}{
		"pure version 2": {
			"0::/system.slice/tdf-worker.service/worker\n",
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
			location{v2: "/sys/fs/cgroup/system.slice/tdf-worker.service/worker"},
		},
		"hybrid": {
			"9:name=systemd:/\n8:pids:/\n4:memory:/api/ab47\n2:cpu,cpuacct:/x\n0::/\n", hybridMounts,
			location{v2: "/sys/fs/cgroup/unified", v1: map[string]string{
				"pids": "/sys/fs/cgroup/pids", "memory": "/sys/fs/cgroup/memory/api/ab47",
				"cpu": "/sys/fs/cgroup/cpu,cpuacct/x", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/x",
				"name=systemd": "/sys/fs/cgroup/systemd",
			}},
		},
		"only version 1": {
			"4:memory:/user.slice\n1:pids:/a:b\n", "35 31 0:32 / /cg/mem rw - cgroup cgroup rw,memory\n39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids\n",
			location{v1: map[string]string{"memory": "/cg/mem/user.slice", "pids": "/cg/pids/a:b"}},
		},
		"container with a cgroup namespace": {
			"0::/\n", "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
			location{v2: "/sys/fs/cgroup"},
		},
		"container without one, its part mounted": {
			"4:memory:/docker/abc/sub\n0::/docker/abc\n",
			"29 23 0:26 /docker/ab /mnt/other rw - cgroup2 cgroup rw\n" +
				"30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n" +
				"31 23 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			location{v2: "/sys/fs/cgroup", v1: map[string]string{"memory": "/sys/fs/cgroup/memory/sub"}},
		},
		"above its namespace": {
			"0::/../other\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", location{},
		},
		"mounted from above its namespace": {
			"0::/\n", "30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", location{},
		},
		"white space": {
			"0::/a b\n", `30 23 0:26 / /mnt/c\040g\134 rw - cgroup2 cgroup rw` + "\n", location{v2: `/mnt/c g\/a b`},
		},
		"nothing":  {"", "", location{}},
		"nonsense": {"0:\n:::\nx\n", "1 2\n - \n30 23 0:26 / /x - cgroup2\n", location{}},
	} {
		got := locate(c.cgroups, c.mounts)
		if c.want.v1 == nil {
			c.want.v1 = map[string]string{}
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(location{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
