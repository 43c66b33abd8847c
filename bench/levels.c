/* bench_levels: what the cards' levels cost, the cutoffs of routing.threshold
 * "auto".
 *
 * 20, 1 000 and 100 000 agents with a skill and two examples each are embedded
 * by the built-in model and put into an index, as the registry does. Then the
 * index is given the reference texts of the binary and computes every level.
 * Processor time: of embedding and indexing, of the levels, and of one level.
 * A card of 256 skills, the largest that is allowed, is measured by itself.
 *
 * A server pays for a level once, when a card is registered or changed, and a
 * start with a snapshot pays for none. Exit status 1 unless a level takes less
 * than 200 us, and less than four times what embedding and indexing its card
 * takes. */
#include "registry/index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/vec.h"
#include "embed/embed.h"
#include "registry/registry.h"

enum {
    TEXT_BYTES = 160,
    SKILLS_MAX = AGENT_SKILLS_MAX,
    PACKED_BYTES = 8 * 1024 * 1024,
};
static const size_t SIZES[] = {20, 1000, 100 * 1000};
static const double GOAL_US = 200, GOAL_TIMES = 4;

static const char *const words[] = {
    "invoice", "refund",   "payment",   "tax",      "flight",   "hotel",
    "train",   "passport", "recipe",    "dinner",   "wine",     "bread",
    "code",    "compiler", "database",  "deploy",   "contract", "lawyer",
    "lease",   "patent",   "symptom",   "doctor",   "medicine", "allergy",
    "french",  "grammar",  "essay",     "poem",     "weather",  "storm",
    "garden",  "soil",     "football",  "chess",    "marathon", "bicycle",
    "guitar",  "melody",   "concert",   "piano",    "laptop",   "printer",
    "network", "backup",   "painting",  "museum",   "pottery",  "fashion",
    "history", "empire",   "physics",   "planet",   "school",   "exam",
    "library", "college",  "engine",    "battery",  "parking",  "insurance",
    "dog",     "cat",      "sculpture", "homework",
};
static const char *const verbs[] = {"book",   "explain", "compare", "find",
                                    "repair", "plan",    "review",  "write"};

static void die(const char *what)
{
    fprintf(stderr, "bench_levels: %s\n", what);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        die("processor time");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t dice = 1;

static uint32_t draw(size_t below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice >> 33) % below);
}

static const char *word(void)
{
    return words[draw(sizeof(words) / sizeof(words[0]))];
}

static const char *verb(void)
{
    return verbs[draw(sizeof(verbs) / sizeof(verbs[0]))];
}

/* A card of so many skills with two examples each; the same again at the next
 * call, with other words. */
struct maker {
    struct agent agent;
    struct skill skills[SKILLS_MAX];
    struct str examples[SKILLS_MAX][2];
    char texts[4 * SKILLS_MAX + 2][TEXT_BYTES];
    size_t n_texts;
};

static struct str any_text(struct maker *m, const char *before)
{
    char *room = m->texts[m->n_texts++];

    snprintf(room, TEXT_BYTES, "%s %s the %s and the %s", before, verb(),
             word(), word());
    return str_of(room);
}

static const struct agent *any_card(struct maker *m, size_t n_skills)
{
    m->n_texts = 0;
    for (size_t i = 0; i < n_skills; i++) {
        m->examples[i][0] = any_text(m, "please");
        m->examples[i][1] = any_text(m, "can you");
        m->skills[i] = (struct skill){
            .id = STR("s"),
            .name = str_of(word()),
            .description = any_text(m, "Helps to"),
            .examples = {m->examples[i], 2},
        };
    }
    m->agent = (struct agent){
        .name = any_text(m, ""),
        .description = any_text(m, "For people who want to"),
        .visibility = VISIBILITY_PUBLIC,
        .skills = m->skills,
        .n_skills = n_skills,
    };
    return &m->agent;
}

struct bench {
    struct loop loop;
    struct log log;
    struct embed *embed;
    uint32_t dims;
    struct maker maker;
    struct buf packed, means;
};

static void open_model(struct bench *b)
{
    struct embed_opts opts = {.kind = EMBED_TABLE,
                              .max_waiting = 1000,
                              .max_waiting_bytes = 16 << 20,
                              .timeout_ms = 1000};
    struct why why = {""};

    if (loop_init(&b->loop, clock_system()))
        die("loop");
    log_init(&b->log, STDERR_FILENO, LOG_ERROR, LOG_TEXT, clock_system());
    if (embed_new(&b->embed, &b->loop, &b->log, NULL, &opts, &why))
        die(why.text);
    b->dims = embed_stamp(b->embed).dims;
    buf_init(&b->packed, PACKED_BYTES);
    buf_init(&b->means, PACKED_BYTES);
}

static void add_vector(struct bench *b, struct str text, enum embed_use use,
                       struct buf *out)
{
    float v[EMBED_DIMS_MAX];
    uint8_t row[8 + 2 * EMBED_DIMS_MAX];

    if (!embed_now(b->embed, text, use, v) || !vec_pack(v, b->dims, row))
        die("a vector");
    buf_add_str(out,
                (struct str){(const char *)row, vec_packed_bytes(b->dims)});
}

/* As the registry does it: all texts of the card, the means of them, and what
 * it is routed by as a whole. */
static void put_card(struct bench *b, struct index *x, uint32_t number,
                     const struct agent *a)
{
    size_t each = vec_packed_bytes(b->dims);
    struct index_change *change;
    struct arena arena;
    struct strs texts;

    arena_init(&arena, PACKED_BYTES);
    buf_clear(&b->packed);
    buf_clear(&b->means);
    if (registry_texts(&arena, a, &texts))
        die("memory");
    for (size_t i = 0; i < texts.n; i++)
        add_vector(b, texts.list[i], EMBED_DOCUMENT, &b->packed);
    if (!registry_means(a, buf_str(&b->packed), b->dims, 0, &b->means) ||
        index_prepare(x, a, (const uint8_t *)b->means.p, &change))
        die("memory");
    index_change_profile(
        x, change, (const uint8_t *)b->means.p + (a->n_skills + 1) * each);
    index_put(x, number, change);
    arena_fini(&arena);
}

static void set_reference(struct bench *b, struct index *x)
{
    static struct str texts[EMBED_REFERENCE_MAX];
    size_t n = embed_reference(texts);

    buf_clear(&b->packed);
    for (size_t i = 0; i < n; i++)
        add_vector(b, texts[i], EMBED_QUERY, &b->packed);
    if (index_set_reference(x, (const uint8_t *)b->packed.p, n))
        die("memory");
}

static bool measure(struct bench *b, size_t n_agents, size_t n_skills)
{
    static const uint64_t seed[2] = {1, 2};
    struct index *x = index_new(INDEX_DOCS_MAX, seed);
    double began, put_us, level_us;
    bool is_good;

    if (!x)
        die("memory");
    index_set_dims(x, b->dims);
    dice = 1;
    began = cpu_s();
    for (size_t i = 0; i < n_agents; i++)
        put_card(b, x, (uint32_t)i, any_card(&b->maker, n_skills));
    put_us = 1e6 * (cpu_s() - began);
    set_reference(b, x);
    began = cpu_s();
    if (index_level_some(x, n_agents) || !(index_level(x, 0).high > 0))
        die("levels are missing");
    level_us = 1e6 * (cpu_s() - began);
    is_good = n_skills > 1 || (level_us < GOAL_US * (double)n_agents &&
                               level_us < GOAL_TIMES * put_us);
    printf("%7zu agents of %3zu skill%s %9.1f ms to embed and index, %8.1f ms "
           "for levels, %6.1f us a card%s\n",
           n_agents, n_skills, n_skills == 1 ? ", " : "s,", put_us / 1000,
           level_us / 1000, level_us / (double)n_agents,
           is_good ? "" : ", MISSED");
    index_free(x);
    return is_good;
}

int main(void)
{
    struct bench *b = calloc(1, sizeof(*b));
    bool is_good = true;
    double began;

    if (!b)
        die("memory");
    open_model(b);
    began = cpu_s();
    for (size_t i = 0; i < 3; i++)
        is_good &= measure(b, SIZES[i], 1);
    is_good &= measure(b, 20, SKILLS_MAX);
    printf("%.1f s of processor time in all\n", cpu_s() - began);
    embed_free(b->embed);
    buf_fini(&b->packed);
    buf_fini(&b->means);
    loop_turn(&b->loop);
    free(b);
    return is_good ? 0 : 1;
}
