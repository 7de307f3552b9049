// The floor: runs PROGRAM NUMBER for each number that comes as a line on stdin, SLOTS at a time, by posix_spawn, takes
// what each writes to stdout and stderr from two pipes, waits for its end, and writes its stdout out. It keeps no record.
//
//     cc -O2 -o spawn spawn.c && seq 1000 | ./spawn 2 ./run.sh
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STREAMS = 2, MOST_SLOTS = 256 };

struct slot {
	pid_t pid;        // 0: free
	int from[STREAMS]; // -1: at its end
};

static void die(const char *what) {
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void start(struct slot *s, char *program, char *number) {
	posix_spawn_file_actions_t actions;
	int to[STREAMS];
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < STREAMS; i++) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) != 0) die("pipe2");
		s->from[i] = ends[0], to[i] = ends[1];
		posix_spawn_file_actions_adddup2(&actions, to[i], i + 1);
	}
	char *args[] = {program, number, NULL};
	errno = posix_spawn(&s->pid, program, &actions, NULL, args, environ);
	if (errno != 0) die(program);
	posix_spawn_file_actions_destroy(&actions);
	for (int i = 0; i < STREAMS; i++) close(to[i]);
}

// take reads what is there from one stream of a slot.
static void take(struct slot *s, int stream) {
	char buffer[65536];
	ssize_t n = read(s->from[stream], buffer, sizeof buffer);
	if (n < 0) die("read");
	if (n == 0) {
		close(s->from[stream]);
		s->from[stream] = -1;
	} else if (fwrite(buffer, 1, (size_t)n, stream == 0 ? stdout : stderr) != (size_t)n) {
		die("write");
	}
}

// finish waits for the program of a slot whose streams are at their end.
static void finish(struct slot *s) {
	int status;
	if (waitpid(s->pid, &status, 0) < 0) die("waitpid");
	if (status != 0) {
		fprintf(stderr, "spawn: a program ended with status %d\n", status);
		exit(1);
	}
	s->pid = 0;
}

// next reads the number of the next task, and is 0 if there is none.
static int next(char **line, size_t *size) {
	ssize_t n = getline(line, size, stdin);
	if (n <= 0) return 0;
	if ((*line)[n - 1] == '\n') (*line)[n - 1] = 0;
	return 1;
}

int main(int argc, char **argv) {
	static struct slot all[MOST_SLOTS];
	int slots = argc == 3 ? atoi(argv[1]) : 0, more = 1, busy = 0;
	char *line = NULL;
	size_t size = 0;
	if (slots < 1 || slots > MOST_SLOTS) {
		fprintf(stderr, "usage: spawn SLOTS PROGRAM, with 1 to %d slots\n", MOST_SLOTS);
		return 2;
	}
	for (;;) {
		struct pollfd ready[MOST_SLOTS * STREAMS];
		for (int i = 0; i < slots && more; i++)
			if (all[i].pid == 0 && (more = next(&line, &size))) start(&all[i], argv[2], line), busy++;
		if (busy == 0) break;
		for (int i = 0; i < slots * STREAMS; i++) {
			struct slot *s = &all[i / STREAMS];
			ready[i] = (struct pollfd){.fd = s->pid == 0 ? -1 : s->from[i % STREAMS], .events = POLLIN};
		}
		if (poll(ready, (nfds_t)(slots * STREAMS), -1) < 0) die("poll");
		for (int i = 0; i < slots * STREAMS; i++) {
			struct slot *s = &all[i / STREAMS];
			if (ready[i].revents != 0) take(s, i % STREAMS);
			if (s->pid != 0 && s->from[0] < 0 && s->from[1] < 0) finish(s), busy--;
		}
	}
	free(line);
	return fflush(stdout) == 0 ? 0 : 1;
}
