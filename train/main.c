/* train_table --model FILE --texts FOLDER [--out FOLDER] [--grammar FILE]
 *             [--cache FOLDER] [--threads N] [--set NAME=VALUE ...]
 *             [--any-texts] [--quiet]
 * train_table --utterances FILE --texts FOLDER [--grammar FILE]
 *             [--set NAME=VALUE ...] [--any-texts]
 *
 * Makes the table of the built-in model and its card, OUT/builtin.sbt and
 * OUT/builtin.md, and prints its hash. With --utterances it only writes what
 * people might say, one text a line, for train/route. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/make.h"

static const char usage[] =
    "usage: train_table --model FILE --texts FOLDER [--out FOLDER]\n"
    "                   [--grammar FILE] [--cache FOLDER] [--threads N]\n"
    "                   [--set NAME=VALUE] [--any-texts] [--quiet]\n"
    "  --model      MiniLM, as `signalbox model install minilm` leaves it\n"
    "  --texts      where pairs.jsonl.gz and texts.jsonl.gz are\n"
    "  --grammar    how people ask (train/utterances.txt)\n"
    "  --out        where builtin.sbt and builtin.md go (.)\n"
    "  --cache      where the teacher's vectors are kept for the next run\n"
    "  --threads    how many work; the table is the same with any (2)\n"
    "  --set        another choice than that of train/recipe.c, for one run\n"
    "  --utterances write made-up requests into this file, and no table\n"
    "  --any-texts  take texts of other hashes, too\n";

struct options {
    const char *model, *texts, *grammar, *out, *cache, *utterances;
    unsigned n_threads;
    bool any_texts, is_quiet;
    struct recipe recipe;
};

static int say(const struct why *why)
{
    fprintf(stderr, "train_table: %s\n", why->text);
    return EXIT_FAILED;
}

static enum err bad_usage(struct why *why, const char *what)
{
    return why_err(why, ERR_USAGE, "%s\n%s", what, usage);
}

static enum err read_value(struct options *o, const char *name,
                           const char *value, struct why *why)
{
    int64_t n;

    if (strcmp(name, "--model") == 0)
        o->model = value;
    else if (strcmp(name, "--texts") == 0)
        o->texts = value;
    else if (strcmp(name, "--grammar") == 0)
        o->grammar = value;
    else if (strcmp(name, "--out") == 0)
        o->out = value;
    else if (strcmp(name, "--cache") == 0)
        o->cache = value;
    else if (strcmp(name, "--utterances") == 0)
        o->utterances = value;
    else if (strcmp(name, "--set") == 0)
        return recipe_set(&o->recipe, str_of(value), why);
    else if (strcmp(name, "--threads") != 0)
        return bad_usage(why, "no such option");
    else if (str_to_i64(str_of(value), &n) || n < 1 || n > CREW_MAX)
        return bad_usage(why, "--threads takes a number from 1 to 64");
    else
        o->n_threads = (unsigned)n;
    return OK;
}

static enum err read_options(struct options *o, int argc, char **argv,
                             struct why *why)
{
    enum err e = OK;

    *o = (struct options){.out = ".",
                          .grammar = "train/utterances.txt",
                          .n_threads = 2,
                          .recipe = recipe_builtin()};
    for (int i = 1; i < argc && !e; i++) {
        if (strcmp(argv[i], "--any-texts") == 0)
            o->any_texts = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            o->is_quiet = true;
        else if (i + 1 == argc)
            e = bad_usage(why, "an option without its value");
        else
            e = read_value(o, argv[i], argv[i + 1], why), i++;
    }
    if (!e && !o->utterances && (!o->model || !*o->model))
        e = bad_usage(why, "--model is needed");
    if (!e && (!o->texts || !*o->texts))
        e = bad_usage(why, "--texts is needed");
    return e;
}

/* Before hours of work, not after: whether a file can be made there. */
static enum err check_folder(const char *option, const char *folder,
                             struct why *why)
{
    char path[4096];
    int fd = -1;

    if ((size_t)snprintf(path, sizeof(path), "%s/.train_table-XXXXXX",
                         folder) >= sizeof(path))
        errno = ENAMETOOLONG;
    else
        fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return why_err(why, ERR_IO,
                       "cannot write into %s, the folder of %s: %s", folder,
                       option, strerror(errno));
    close(fd);
    unlink(path);
    return OK;
}

/* Whole or not at all. */
static enum err write_file(const char *folder, const char *name,
                           struct str bytes, struct why *why)
{
    char path[4096], made[4096 + 8];
    int fd;
    bool is_done;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(made, sizeof(made), "%s.new", path);
    fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    is_done = fd >= 0 && write(fd, bytes.p, bytes.n) == (ssize_t)bytes.n;
    if (fd >= 0 && close(fd) != 0)
        is_done = false;
    if (!is_done || rename(made, path) != 0)
        return why_err(why, ERR_IO, "cannot write %s: %s", path,
                       strerror(errno));
    return OK;
}

static enum err write_all(const struct options *o, const struct card *card,
                          struct why *why)
{
    struct buf text;
    enum err e;

    buf_init(&text, 1 << 20);
    card_write(card, &text);
    e = write_file(o->out, "builtin.sbt", buf_str(&card->result->table), why);
    if (!e)
        e = write_file(o->out, "builtin.md", buf_str(&text), why);
    if (!e)
        printf("%s  %s/builtin.sbt\n", card->result->hash, o->out);
    buf_fini(&text);
    return e;
}

static enum err run(const struct options *o, const struct teacher *teacher,
                    const struct grammar *grammar, struct why *why)
{
    struct train_job job = {.recipe = o->recipe,
                            .teacher = teacher,
                            .grammar = grammar,
                            .cache = o->cache,
                            .n_threads = o->n_threads,
                            .is_quiet = o->is_quiet};
    struct card card = {.job = &job, .command = "make table"};
    char files_hash[HASH_CHARS + 1];
    struct train_result result;
    struct corpus corpus;
    struct lexicon lexicon;
    enum err e;

    corpus_init(&corpus, &job.recipe);
    lexicon_init(&lexicon);
    e = texts_read(&corpus, &lexicon, grammar, &job.recipe, o->texts,
                   o->any_texts, files_hash, why);
    if (!e) {
        job.lexicon = &lexicon;
        card.result = &result;
        card.corpus = &corpus;
        card.files_hash = files_hash;
        e = train_make(&result, &corpus, &job, why);
        if (!e)
            e = write_all(o, &card, why);
        train_result_fini(&result);
    }
    corpus_fini(&corpus);
    lexicon_fini(&lexicon);
    return e;
}

static enum err write_utterances(const struct options *o,
                                 const struct grammar *grammar, struct why *why)
{
    char files_hash[HASH_CHARS + 1];
    struct corpus corpus;
    struct lexicon lexicon;
    struct buf lines;
    enum err e;

    corpus_init(&corpus, &o->recipe);
    lexicon_init(&lexicon);
    buf_init(&lines, 256 << 20);
    e = texts_read(&corpus, &lexicon, grammar, &o->recipe, o->texts,
                   o->any_texts, files_hash, why);
    if (!e)
        utterances_make(&corpus, &o->recipe, grammar, &lexicon);
    for (size_t i = 0; !e && i < corpus.n_texts; i++)
        if (corpus.texts[i].group == GROUP_UTTERANCES)
            buf_addf(&lines, "%.*s\n", STR_ARG(corpus.texts[i].s));
    if (!e)
        e = write_file(".", o->utterances, buf_str(&lines), why);
    buf_fini(&lines);
    corpus_fini(&corpus);
    lexicon_fini(&lexicon);
    return e;
}

int main(int argc, char **argv)
{
    struct options o;
    struct teacher teacher = {0};
    struct grammar grammar = {.hash = ""};
    struct why why = {""};
    enum err e = read_options(&o, argc, argv, &why);

    if (e) {
        say(&why);
        return EXIT_USAGE;
    }
    if (!o.utterances)
        e = check_folder("--out", o.out, &why);
    if (!e && o.cache)
        e = check_folder("--cache", o.cache, &why);
    if (!e)
        e = grammar_read(&grammar, o.grammar, &why);
    if (!e && o.utterances)
        e = write_utterances(&o, &grammar, &why);
    if (!e && !o.utterances)
        e = teacher_open(&teacher, o.model, &why);
    if (!e && !o.utterances)
        e = run(&o, &teacher, &grammar, &why);
    teacher_close(&teacher);
    grammar_fini(&grammar);
    return e ? say(&why) : EXIT_DONE;
}
