// Two threads that hand over through two futexes in turn, LOOPS times. Prints the half of the
// mean time there and back, ns. Started with the policy and the CPUs that both are to have.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned ping, pong;
static long loops;

static void post(_Atomic unsigned *word) {
	atomic_store(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

static void take(_Atomic unsigned *word) {
	while (atomic_exchange(word, 0) == 0)
		syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0);
}

static void *answer(void *none) {
	for (long i = 0; i < loops; i++) {
		take(&ping);
		post(&pong);
	}
	return none;
}

int main(int argc, char **argv) {
	pthread_t other;
	struct timespec from, to;
	loops = argc > 1 ? atol(argv[1]) : 0;
	if (pthread_create(&other, 0, answer, 0))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < loops; i++) {
		post(&ping);
		take(&pong);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	pthread_join(other, 0);
	double ns = (to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec - from.tv_nsec;
	printf("%.1f\n", ns / loops / 2);
	return 0;
}
