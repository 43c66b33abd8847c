/* What each tier of the built-in model costs, on every level of the processor:
 * the table, the transformer, and what a server does with both for a text that
 * the table alone does not decide. Texts of three lengths: 3 words, 12 words,
 * and one that is longer than the transformer reads (256 pieces).
 *
 * And what a server takes with each kind: until it answers, and in memory once
 * everything that a start sets going is done. */
#include <sys/stat.h>

#include "bench/cpu.h"
#include "bench/embed.h"
#include "embed/internal.h"

enum { TIMES_MAX = 2000, LONG_BYTES = 4096, SETTLE_S = 3, STARTS = 5 };

static const double GOAL_MS[N_CPU_LEVELS] = {0, 1.5, 0.5};

/* ARM has none yet. */
static double goal_ms(enum cpu_level level)
{
    return strncmp(cpu_level_name(level), "avx", 3) == 0 ? GOAL_MS[level] : 0;
}

struct tiers {
    struct builtin table;
    struct minilm *model;
    struct minilm_scratch *scratch; /* of the level that is measured */
    char long_text[LONG_BYTES];
};

struct cost {
    double half, most; /* p50 and p99, us */
};

static struct cost cost_of(double *us, size_t n)
{
    qsort(us, n, sizeof(*us), by_value);
    return (struct cost){us[n / 2], us[n * 99 / 100]};
}

/* A few texts together, since the clock is no better than that. */
static struct cost table_cost(struct tiers *t, const char *const *texts,
                              size_t n)
{
    static double us[TIMES_MAX];
    float v[BUILTIN_DIMS];

    for (size_t i = 0; i < TIMES_MAX; i++) {
        double before = own_cpu_s();

        for (size_t k = 0; k < n; k++)
            builtin_embed(&t->table, str_of(texts[k]), v);
        us[i] = (own_cpu_s() - before) * 1e6 / (double)n;
    }
    return cost_of(us, TIMES_MAX);
}

static struct cost transformer_cost(struct tiers *t, const char *const *texts,
                                    size_t n, size_t times)
{
    static double us[TIMES_MAX];
    float v[MINILM_DIMS];

    for (size_t i = 0; i < times; i++) {
        double before = own_cpu_s();

        minilm_embed(t->model, t->scratch, str_of(texts[i % n]), v);
        us[i] = (own_cpu_s() - before) * 1e6;
    }
    return cost_of(us, times);
}

static bool bench_level(struct tiers *t, enum cpu_level level)
{
    static const char *const few[] = {"turn off the lights", "cancel my order",
                                      "is it raining"};
    const char *const many[] = {t->long_text};
    const struct {
        const char *what;
        const char *const *texts;
        size_t n;
    } all[] = {{"3 words", few, 3},
               {"12 words", embed_texts, n_embed_texts},
               {"256 pieces", many, 1}};
    size_t times = level == CPU_PLAIN ? 60 : 400;
    bool is_missed = false;

    bench_cpu_set(level);
    t->scratch = minilm_scratch_new(t->model, level);
    if (!t->scratch)
        die("memory");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct cost table = table_cost(t, all[i].texts, all[i].n);
        struct cost deep = transformer_cost(t, all[i].texts, all[i].n,
                                            times / (i == 2 ? 4 : 1));
        bool is_over =
            i == 1 && goal_ms(level) > 0 && deep.half > goal_ms(level) * 1e3;

        printf("  %-8s%-12s table %6.2f %6.2f us   transformer %8.3f %8.3f "
               "ms%s\n",
               cpu_level_name(level), all[i].what, table.half, table.most,
               deep.half / 1e3, deep.most / 1e3,
               i != 1 || goal_ms(level) <= 0 ? ""
               : is_over                     ? "   MISSED"
                                             : "   reached");
        is_missed |= is_over;
    }
    minilm_scratch_free(t->scratch);
    return !is_missed;
}

/* The server, from its start to its first line, and later. */
static void bench_start(const char *binary, const char *data, const char *kind)
{
    double wall_ms[STARTS], cpu_ms[STARTS], later_ms = 0;
    struct memory early = {0, 0}, later = {0, 0};
    char folder[512], set[64];

    snprintf(set, sizeof(set), "embed.kind=%s", kind);
    for (int i = 0; i < STARTS; i++) {
        struct timespec a, b;
        struct peer p;

        snprintf(folder, sizeof(folder), "%s/%s-%d", data, kind, i);
        clock_gettime(CLOCK_MONOTONIC, &a);
        p = peer_run("signalbox",
                     (const char *[]){binary, "serve", "--json", "--listen",
                                      "127.0.0.1:0", "--data", folder, "--set",
                                      "log.level=warn", "--set", set, NULL});
        clock_gettime(CLOCK_MONOTONIC, &b);
        wall_ms[i] = (double)(b.tv_sec - a.tv_sec) * 1e3 +
                     (double)(b.tv_nsec - a.tv_nsec) / 1e6;
        cpu_ms[i] = peer_cpu_s(&p) * 1e3;
        early = memory_of(p.pid);
        if (i == STARTS - 1) {
            sleep(SETTLE_S);
            later = memory_of(p.pid);
            later_ms = peer_cpu_s(&p) * 1e3;
        }
        peer_stop(&p);
    }
    qsort(wall_ms, STARTS, sizeof(*wall_ms), by_value);
    qsort(cpu_ms, STARTS, sizeof(*cpu_ms), by_value);
    printf("  %-12s answers after %.0f ms (%.0f of the processor; %.0f when "
           "all is done); resident %.1f MB, later %.1f, of which %.1f are "
           "pages of files\n",
           kind, wall_ms[STARTS / 2], cpu_ms[STARTS / 2], later_ms,
           early.all_mb, later.all_mb, later.file_mb);
}

bool bench_tiers(const char *binary, const char *data)
{
    static const char *const kinds[] = {"table", "transformer", "builtin"};
    static struct tiers t;
    struct why why = {""};
    struct stat st;
    double before = own_cpu_s(), table_ms, model_ms;
    bool reached = true;

    if (builtin_open(&t.table, &why))
        goto bad;
    table_ms = (own_cpu_s() - before) * 1e3;
    before = own_cpu_s();
    if (transformer_open(&t.model, &why))
        goto bad;
    model_ms = (own_cpu_s() - before) * 1e3;
    for (size_t n = 0; n + 64 < LONG_BYTES;)
        n += (size_t)snprintf(t.long_text + n, LONG_BYTES - n, "%s",
                              "please look at the order number and ");
    printf("tiers, p50 and p99 of processor time for a text; goals of 12 "
           "words: %.1f ms with AVX-512, %.1f with AVX2\n",
           GOAL_MS[CPU_AVX512], GOAL_MS[CPU_AVX2]);
    for (int level = bench_cpu_widest(); level >= CPU_PLAIN; level--)
        reached &= bench_level(&t, (enum cpu_level)level);
    bench_cpu_set(bench_cpu_widest());
    if (stat(binary, &st) != 0)
        die(binary);
    printf("  opened in %.1f ms (table, %.1f MB) and %.1f ms (transformer, "
           "%.1f MB); the binary has %.1f MB\n",
           table_ms, (double)builtin_bytes() / 1e6, model_ms,
           (double)transformer_bytes() / 1e6, (double)st.st_size / 1e6);
    fflush(stdout);
    minilm_close(t.model);
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        die(data);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        bench_start(binary, data, kinds[i]);
    return reached;
bad:
    fprintf(stderr, "bench_embed: %s\n", why.text);
    exit(1);
}
