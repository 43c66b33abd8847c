/* The card that lies beside the table: where it comes from, what it is good
 * for and what not. Written with the table, so that it cannot be of another. */
#include "train/make.h"

/* Where the texts of each source come from, as far as that is known here: they
 * come with the names of their sources and nothing else. */
static const struct licence {
    const char *source, *from, *licence;
} licences[] = {
    {"wordnet", "WordNet: words and what they mean", "WordNet License"},
    {"wordnet_ex", "WordNet: words used in a sentence", "WordNet License"},
    {"debian", "Debian: descriptions of packages",
     "each package's own, free by Debian's guidelines"},
    {"openapi_op", "operations of public APIs, as they describe themselves",
     "not recorded with the texts"},
    {"openapi_api", "public APIs, as they describe themselves",
     "not recorded with the texts"},
    {"tldr", "tldr-pages: examples of commands", "CC BY 4.0"},
    {"aws", "operations of cloud services, from their SDKs", "Apache-2.0"},
    {"faq", "questions and answers", "not recorded with the texts"},
    {"mcp", "MCP servers, as their packages describe them",
     "not recorded with the texts"},
    {"rasa", "Rasa: examples of intents", "Apache-2.0"},
    {"snips", "Snips: requests to an assistant", "CC0 1.0"},
    {"taskmaster", "Taskmaster: turns of dialogues", "CC BY 4.0"},
};
enum { N_LICENCES = sizeof(licences) / sizeof(licences[0]) };

static void add_groups(const struct corpus *c, struct buf *out)
{
    buf_addf(out, "| group | texts |\n| --- | --- |\n");
    for (size_t i = 0; i < N_GROUPS; i++)
        buf_addf(out, "| %s | %zu |\n", text_group_name((enum text_group)i),
                 c->n_of_group[i]);
    buf_addf(out, "\nAll but those of files are made out of those of files "
                  "and `train/utterances.txt`.\n\n");
}

static void add_sources(const struct corpus *c, struct buf *out)
{
    buf_addf(out, "| source | texts | what | licence |\n"
                  "| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < c->n_sources; i++) {
        if (!c->n_of_source[i])
            continue;
        struct licence l = {c->sources[i], "", "not recorded"};

        for (size_t j = 0; j < N_LICENCES; j++)
            if (strcmp(licences[j].source, c->sources[i]) == 0)
                l = licences[j];
        buf_addf(out, "| %s | %zu | %s | %s |\n", l.source, c->n_of_source[i],
                 l.from, l.licence);
    }
}

static void add_figures(const char *name, const struct figures *f,
                        struct buf *out)
{
    buf_addf(out, "| %s | %.4f | %.1f %% |\n", name, f->cosine,
             100 * f->pairs_student);
}

static void add_learning(const struct train_result *r, struct buf *out)
{
    buf_addf(out,
             "\n## Figures\n\n"
             "On %zu texts that were held out: the mean cosine to the "
             "teacher's\nvector; and of %zu pairs of texts that mean the same, "
             "how many of the first\nhave the second as the nearest of all "
             "second ones.\n\n"
             "| | cosine | pairs |\n| --- | --- | --- |\n",
             r->bytes.n_held, r->bytes.n_pairs);
    add_figures("the teacher's words, weighted", &r->first, out);
    add_figures("after learning", &r->floats, out);
    add_figures("as bytes, which is the table", &r->bytes, out);
    buf_addf(out, "| the teacher, in %d numbers | 1 | %.1f %% |\n", TABLE_DIMS,
             100 * r->bytes.pairs_teacher);
    buf_addf(out,
             "\nThe first %d axes of the teacher's vectors keep %.1f %% of "
             "them. What the table\nis worth on sets of requests and agents, "
             "none of which it was trained on, is in\n"
             "`docs/quality.md`.\n",
             TABLE_DIMS, 100 * r->kept);
}

static void add_recipe(const struct card *c, struct buf *out)
{
    struct buf list;
    struct str lines;

    buf_init(&list, 1 << 16);
    recipe_list(&c->job->recipe, &list);
    buf_addf(out, "\n## Recipe\n\nWhat each means is in `train/recipe.h`.\n\n"
                  "| | |\n| --- | --- |\n");
    for (lines = buf_str(&list); lines.n;) {
        struct str value = str_cut(&lines, '\n'), name = str_cut(&value, ' ');

        buf_addf(out, "| %.*s | %.*s |\n", STR_ARG(name), STR_ARG(value));
    }
    buf_fini(&list);
}

static void add_limits(struct buf *out)
{
    buf_addf(
        out,
        "\n## Limits\n\n"
        "- An average of words sees neither their order nor a negation: "
        "\"lights on\" and\n  \"lights off\" are nearly the same to it. "
        "Examples for each skill help, or the\n  model it learnt from.\n"
        "- English. Other languages work by characters and by what words "
        "they share, not\n  by meaning.\n"
        "- Names and rare words say less than a search for the word itself "
        "would; use both.\n"
        "- What its teacher has wrong, it has wrong too, and the texts are "
        "about software,\n  tools and dictionary words more than about "
        "people.\n");
}

void card_write(const struct card *c, struct buf *out)
{
    const struct train_result *r = c->result;

    buf_addf(out,
             "# The built-in model\n\n"
             "`builtin.sbt` turns a text into %d numbers: a row for each word, "
             "piece of a word\nor phrase, averaged. Made by `%s`, which gives "
             "the same bytes every time.\n\n"
             "| | |\n| --- | --- |\n"
             "| hash in the file, which `signalbox model` shows | %s |\n"
             "| SHA-256 of the file | %s |\n| bytes | %zu |\n"
             "| rows | %zu pieces, %zu whole words, %zu phrases; %zu of them "
             "seen in training |\n"
             "| teacher | all-MiniLM-L6-v2 (Apache-2.0), hash in our file of "
             "it %s |\n"
             "| files of texts | SHA-256 of both hashes: %s |\n"
             "| grammar | `train/utterances.txt`, SHA-256 %s |\n"
             "| texts | %zu, SHA-256 %s |\n"
             "| trained on | %zu texts",
             TABLE_DIMS, c->command, r->inner_hash, r->hash, r->table.n,
             r->n_pieces, r->n_words, r->n_phrases, r->n_seen,
             c->job->teacher->hash, c->files_hash, c->job->grammar->hash,
             c->corpus->n_texts, r->texts_hash, r->n_trained);
    if (r->n_pairs)
        buf_addf(out, ", %zu pairs", r->n_pairs);
    buf_addf(out, " |\n\n## Texts\n\n");
    add_groups(c->corpus, out);
    add_sources(c->corpus, out);
    add_learning(r, out);
    add_recipe(c, out);
    add_limits(out);
}
