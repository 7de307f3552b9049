package manager

import (
	"context"
	"errors"
)

// lease is the one under which handlers are called, begun where there is none or
// it is lost. Only Run calls it.
func (m *Manager) lease(ctx context.Context) (*handling, error) {
	if m.handling != nil && !m.handling.lost() {
		return m.handling, nil
	}
	if m.handling != nil {
		m.handling.release()
	}
	h, err := m.beginHandling(ctx)
	if err != nil {
		return nil, err
	}
	m.handling = h
	return h, nil
}

// giveBack lets others have what this manager was granted and did not archive.
func (m *Manager) giveBack(ctx context.Context) error {
	if m.handling == nil || m.handling.lost() || m.handling.idle() {
		return nil
	}
	_, err := m.handling.take(ctx, "", nil)
	if errors.Is(err, ErrHandlingLost) {
		m.handling.lose(err)
		return nil
	}
	return err
}

// endLease gives everything back; handlers have returned.
func (m *Manager) endLease(ctx context.Context) {
	if m.handling == nil {
		return
	}
	m.handling.end(ctx)
	m.handling = nil
}
