/* bench_embed SIGNALBOX DATA [NODE-SCRIPT NODE-MODULES MODEL-FILE]: what the
 * vector of a text costs.
 *
 *     table     our table, in three moods of the processor's caches:
 *               warm, the same texts again and again; wide, words drawn from
 *               the whole table, so that hardly any row was there before; cold,
 *               the caches emptied before each text
 *     tiers     the table and the transformer inside the binary on every level
 *               of the processor, and what a server takes with each
 *               (bench/embed_tiers.c)
 *     minilm    our own C against onnxruntime-node (bench/embed_minilm.c), if
 *               its arguments are given
 *
 * Processor time, the median of the rounds; for cold, where one text is too
 * short for that clock, the time on the wall. Exit status 1 unless the table
 * needs less than 5 us, warm and wide, and minilm at most 1.5 times what the
 * other needs. MODEL-FILE is made if it is not there. */
#include "bench/embed.h"

#include "embed/internal.h"

const char *const embed_texts[] = {
    "what will the weather be like in paris tomorrow in the afternoon",
    "please book a table for four people at an italian restaurant tonight",
    "how much money did i spend on groceries in the last month",
    "translate this letter from german into english and keep its polite tone",
    "remind me to call my mother on sunday morning at nine o'clock",
    "find the cheapest flight from london to new york in early june",
    "why does my server answer with error five hundred since this morning",
    "turn off all the lights in the living room and the kitchen",
    "write a short summary of the attached report for the whole team",
    "which medicine should i not take together with alcohol or grapefruit "
    "juice",
    "play some quiet piano music and stop it after half an hour",
    "is my credit card accepted in japan without any additional foreign fees",
    "compare these two contracts and list every clause that differs between "
    "them",
    "convert this spreadsheet to json and drop the rows without a date",
    "i lost my passport abroad and need to know what to do",
    "show me recent papers about sparse attention in large language models "
    "please",
    "schedule a meeting with the design team next tuesday after two pm",
    "what is the capital of australia and how many people live there",
    "my package was delivered to the wrong address, where can i complain",
    "generate a logo for a small bakery with warm colours and bread",
};
const size_t n_embed_texts = sizeof(embed_texts) / sizeof(embed_texts[0]);

enum {
    WORDS = 12,
    ROUNDS = 9,
    N_WARM = 200000, /* texts of a round */
    N_WIDE = 20000,
    N_COLD = 300,
    TEXT_BYTES = 1024,
    FLUSH_BYTES = 96 << 20, /* more than any cache here */
};
static const double GOAL_US = 5;

static float sink; /* the work is not idle */

static void embed(const struct builtin *b, struct str text)
{
    float v[BUILTIN_DIMS];

    builtin_embed(b, text, v);
    sink += v[0];
}

static double median(double *of, int n)
{
    qsort(of, (size_t)n, sizeof(*of), by_value);
    return of[n / 2];
}

static double warm_us(const struct builtin *b)
{
    double us[ROUNDS];

    for (int r = 0; r < ROUNDS; r++) {
        double before = own_cpu_s();

        for (size_t i = 0; i < N_WARM; i++)
            embed(b, str_of(embed_texts[i % n_embed_texts]));
        us[r] = (own_cpu_s() - before) * 1e6 / N_WARM;
    }
    return median(us, ROUNDS);
}

/* 12 words of the table, whole ones, any of them. */
static size_t any_words(const struct builtin *b, uint64_t *x, char *out)
{
    size_t n = 0;

    for (int i = 0; i < WORDS;) {
        struct str word;

        *x = *x * 6364136223846793005u + 1442695040888963407u;
        word = vocab_piece(&b->table.words,
                           (uint32_t)(*x >> 33) % b->table.words.n);
        if (str_starts(word, STR("##")) || word.n > 50)
            continue;
        memcpy(out + n, word.p, word.n);
        n += word.n;
        out[n++] = ' ';
        i++;
    }
    return n;
}

static double wide_us(const struct builtin *b)
{
    static char texts[N_WIDE][TEXT_BYTES];
    static size_t lengths[N_WIDE];
    double us[ROUNDS];
    uint64_t x = 1;

    for (int i = 0; i < N_WIDE; i++)
        lengths[i] = any_words(b, &x, texts[i]);
    for (int r = 0; r < ROUNDS; r++) {
        double before = own_cpu_s();

        for (int i = 0; i < N_WIDE; i++)
            embed(b, (struct str){texts[i], lengths[i]});
        us[r] = (own_cpu_s() - before) * 1e6 / N_WIDE;
    }
    return median(us, ROUNDS);
}

static double wall_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cold_us(const struct builtin *b)
{
    static double us[N_COLD];
    char *other = malloc(FLUSH_BYTES);

    if (!other)
        die("memory");
    for (int i = 0; i < N_COLD; i++) {
        double before;

        memset(other, i, FLUSH_BYTES);
        __asm__ volatile("" ::"r"(other) : "memory"); /* it is meant */
        before = wall_s();
        embed(b, str_of(embed_texts[(size_t)i % n_embed_texts]));
        us[i] = (wall_s() - before) * 1e6;
    }
    free(other);
    return median(us, N_COLD);
}

bool bench_builtin(void)
{
    struct memory start = memory_of(getpid()), opened;
    struct builtin b;
    struct why why = {""};
    double before = own_cpu_s(), open_ms, first_us, warm, wide;

    if (builtin_open(&b, &why)) {
        fprintf(stderr, "bench_embed: %s\n", why.text);
        exit(1);
    }
    open_ms = (own_cpu_s() - before) * 1e3;
    opened = memory_of(getpid());
    before = wall_s();
    embed(&b, str_of(embed_texts[0]));
    first_us = (wall_s() - before) * 1e6;
    warm = warm_us(&b);
    wide = wide_us(&b);
    printf("table, %u words and %u phrases, us per text of %d words (%s)\n",
           b.table.words.n, b.table.n_phrases, WORDS,
           cpu_level_name(cpu_level()));
    printf("  warm %.2f   wide %.2f   cold %.1f   the first of all %.1f\n",
           warm, wide, cold_us(&b), first_us);
    printf(
        "  opened in %.1f ms; resident %.1f MB before, %.1f MB after, all of "
        "it pages of the binary: %.1f MB more of those\n",
        open_ms, start.all_mb, opened.all_mb, opened.file_mb - start.file_mb);
    printf("  goal: less than %.0f us, %s\n", GOAL_US,
           warm < GOAL_US && wide < GOAL_US ? "reached" : "MISSED");
    return warm < GOAL_US && wide < GOAL_US;
}

int main(int argc, char **argv)
{
    bool reached;

    if (argc != 3 && argc != 6) {
        fprintf(stderr, "usage: bench_embed SIGNALBOX DATA [NODE-SCRIPT "
                        "NODE-MODULES MODEL-FILE]\n");
        return 2;
    }
    reached = bench_builtin();
    fflush(stdout);
    reached &= bench_tiers(argv[1], argv[2]);
    fflush(stdout);
    if (argc == 6)
        reached &= bench_minilm(argv[3], argv[4], argv[5]);
    return !reached;
}
