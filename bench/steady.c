/* What this machine's processors are at the moment: for each line on standard
 * input, one on standard output with the seconds that the slowest of THREADS
 * threads needs for the same millisecond of multiplications, and the nanoseconds
 * that a word takes from the first thread to the second and back (0 of one).
 *
 * gcc -O2 -pthread steady.c -o steady && ./steady THREADS
 *
 * A virtual machine's processors may be two threads of one core for some
 * seconds, or share one with another machine, or be cores with different third
 * caches.  Nothing within the machine says so but the time that this takes: up to
 * twice as long to multiply, and five to twenty times as long to exchange a word.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 1000000, EXCHANGES = 1000 };

typedef struct {
    pthread_barrier_t *begin, *end;
    int number;
    int processor;              /* to run on; any if negative */
    int threads;
    double seconds, nanoseconds;
} worker;

#if defined(__x86_64__)
#define HIDE(value) __asm__ volatile("" : "+x"(value))
#else
#define HIDE(value) __asm__ volatile("" : "+w"(value))
#endif
#define STEP(chain) chain *= factor; HIDE(chain)

/* Eight independent chains: as many multiplications as the core can have. */
static void multiply(void) {
    typedef float vec __attribute__((vector_size(16)));
    vec factor = {1, 1, 1, 1};
    HIDE(factor);               /* or the compiler knows what comes out */
    vec c0 = factor, c1 = factor, c2 = factor, c3 = factor;
    vec c4 = factor, c5 = factor, c6 = factor, c7 = factor;
    for (long i = 0; i < STEPS; i++) {
        STEP(c0); STEP(c1); STEP(c2); STEP(c3);
        STEP(c4); STEP(c5); STEP(c6); STEP(c7);
    }
}

static _Alignas(128) atomic_int word;

/* The first thread writes 1 when it reads 0, the second 0 when it reads 1. */
static void exchange(int number) {
    for (int i = 0; i < EXCHANGES; i++) {
        while (atomic_load_explicit(&word, memory_order_acquire) != number) {}
        atomic_store_explicit(&word, !number, memory_order_release);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void measure(worker *w) {
    pthread_barrier_wait(w->begin);
    double start = now();
    multiply();
    w->seconds = now() - start;
    pthread_barrier_wait(w->end);
    pthread_barrier_wait(w->begin);
    start = now();
    if (w->threads > 1 && w->number < 2) exchange(w->number);
    w->nanoseconds = (now() - start) / EXCHANGES * 1e9;
    pthread_barrier_wait(w->end);
}

static void *work(void *argument) {
    worker *w = argument;
    if (w->processor >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(w->processor, &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    for (;;) measure(w);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    cpu_set_t allowed;
    if (threads < 1 || sched_getaffinity(0, sizeof allowed, &allowed)) return 2;
    if (CPU_COUNT(&allowed) < threads) threads = CPU_COUNT(&allowed);
    pthread_barrier_t begin, end;
    pthread_barrier_init(&begin, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    worker workers[threads];
    for (int i = 0, processor = 0; i < threads; i++, processor++) {
        while (!CPU_ISSET(processor, &allowed)) processor++;
        workers[i] = (worker){&begin, &end, i, threads > 1 ? processor : -1, threads, 0, 0};
        pthread_t id;
        if (pthread_create(&id, NULL, work, &workers[i])) return 1;
    }
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        double slowest = 0;
        for (int part = 0; part < 2; part++) {
            pthread_barrier_wait(&begin);
            pthread_barrier_wait(&end);
        }
        for (int i = 0; i < threads; i++)
            if (workers[i].seconds > slowest) slowest = workers[i].seconds;
        printf("%.6f %.0f\n", slowest, threads > 1 ? workers[0].nanoseconds : 0.0);
        fflush(stdout);
    }
    return 0;
}
