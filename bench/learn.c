/* bench_learn: what learning costs a message.
 *
 * 20 000 examples of 256 numbers, all of one org, are looked through for every
 * text; then every agent is asked about. Beside it the same sums by products of
 * floats, one vector after the other. Processor time, the median of the rounds.
 * Exit status 1 unless looking through takes less than a millisecond. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "learn/fold/learn.h"

enum { DIMS = 256, N = 20 * 1000, AGENTS = 400, ROUNDS = 101, ASKED = 10000 };

static const uint64_t seed[2] = {1, 2};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *rounds)
{
    qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
    return rounds[ROUNDS / 2];
}

/* Texts have something in common, or nothing would be near anything. */
static struct str any_vector(float *v)
{
    static uint8_t packed[8 + 2 * DIMS];

    for (size_t i = 0; i < DIMS; i++)
        v[i] = (float)(rand() % 2001 - 1000) + (i < 40 ? 700 : 0);
    vec_normalise(v, DIMS);
    vec_pack(v, DIMS, packed);
    return (struct str){(const char *)packed, sizeof(packed)};
}

static struct str name_of(char *to, int i)
{
    return (struct str){to, (size_t)snprintf(to, 32, "agent-%d", i)};
}

static void teach(struct learn *l, float *vectors, int i)
{
    char right[32], wrong[32];
    struct outcome o = {
        .seq = i + 1,
        .kind = OUTCOME_CORRECTION,
        .verdict = VERDICT_NEGATIVE,
        .layer = LAYER_SEMANTIC,
        .scope = STR("org:acme"),
        .text = STR("please book me a flight to rome tomorrow"),
        .model_hash = STR("model"),
        .agent = name_of(wrong, (7 * i + 1) % AGENTS),
        .right_agent = name_of(right, i % AGENTS),
        .vector = any_vector(vectors + (size_t)i * DIMS),
    };

    snprintf(o.decision_id.text, sizeof(o.decision_id.text), "dec_%d", i);
    if (learn_apply(l, &o))
        abort();
}

static double ask(struct learn *l)
{
    float v[DIMS];
    struct learn_query q = {.scope = STR("org:acme"), .vector = any_vector(v)};
    double from = now_us();

    learn_begin(l, &q);
    return now_us() - from;
}

static double look_at_all(struct learn *l, char (*names)[32], float *sum)
{
    double from = now_us();
    struct learn_hint h;

    for (int i = 0; i < ASKED; i++) {
        learn_look(l, str_of(names[i]), &h);
        *sum += h.learned;
    }
    return now_us() - from;
}

static double ask_floats(const float *vectors, float *sums)
{
    float v[DIMS];
    double from;

    any_vector(v);
    from = now_us();
    memset(sums, 0, AGENTS * sizeof(*sums));
    for (int i = 0; i < N; i++) {
        float c = vec_ops()->dot(vectors + (size_t)i * DIMS, v, DIMS);

        if (c > 0) {
            sums[i % AGENTS] += c * c * c;
            sums[(7 * i + 1) % AGENTS] -= c * c * c;
        }
    }
    return now_us() - from;
}

int main(void)
{
    struct learn_settings settings = learn_defaults();
    struct learn *l = learn_new(&settings, STR("model"), 0, seed);
    float *vectors = malloc((size_t)N * DIMS * sizeof(*vectors));
    static char names[ASKED][32];
    double begin[ROUNDS], look[ROUNDS], floats[ROUNDS], from, apply;
    float sums[AGENTS], sum = 0;

    if (!l || !vectors)
        abort();
    from = now_us();
    for (int i = 0; i < N; i++)
        teach(l, vectors, i);
    apply = (now_us() - from) / N;
    for (int i = 0; i < ASKED; i++)
        name_of(names[i], i);
    for (int i = 0; i < ROUNDS; i++) {
        begin[i] = ask(l);
        look[i] = look_at_all(l, names, &sum);
        floats[i] = ask_floats(vectors, sums);
    }
    printf("learn: %zu examples of %d numbers, processor time\n",
           learn_stats(l).examples, DIMS);
    printf("  look through all of them  %7.1f us\n", median(begin));
    printf("  the same with floats      %7.1f us\n", median(floats));
    printf("  ask about %d agents    %7.1f us, %d of them known\n", ASKED,
           median(look), AGENTS);
    printf("  apply an outcome          %7.1f us\n", apply);
    printf("  goal: less than 1 ms: %s\n",
           begin[ROUNDS / 2] < 1000 ? "reached" : "MISSED");
    learn_free(l);
    free(vectors);
    return begin[ROUNDS / 2] < 1000 ? 0 : 1;
}
