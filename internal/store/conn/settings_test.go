package conn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// What the client of Redis is told is what [redis] says. That it holds to it is shown
// by TestHangs and, with Sentinel and a cluster, by test/redisfaults.
func TestSettingsOfTheClient(t *testing.T) {
	t.Parallel()
	o, err := conn.Universal(storetest.Redis(t, "dial_timeout=7", "read_timeout=8", "write_timeout=9"))
	if err != nil || o.DialTimeout != 7*time.Second || o.ReadTimeout != 8*time.Second || o.WriteTimeout != 9*time.Second {
		t.Errorf("timeouts %v, %v, %v, %v", o.DialTimeout, o.ReadTimeout, o.WriteTimeout, err)
	}
	o, err = conn.Universal(storetest.Redis(t, "sentinel_master=m", "sentinel_addrs=a:1, b:2", "sentinel_password=hush"))
	if err != nil || o.MasterName != "m" || strings.Join(o.Addrs, " ") != "a:1 b:2" || o.SentinelPassword != "hush" {
		t.Errorf("sentinels %q of %q, password %q, %v", o.Addrs, o.MasterName, o.SentinelPassword, err)
	}
	o, err = conn.Universal(storetest.Redis(t, "cluster_addrs=a:1, b:2"))
	if err != nil || strings.Join(o.Addrs, " ") != "a:1 b:2" || !o.IsClusterMode {
		t.Errorf("cluster %q, %v", o.Addrs, err)
	}
}
