/* tokenizer.json: the vocabulary, and how texts are split into its pieces. Our
 * way of splitting is fixed in words.c, so a file that requires another way is
 * rejected rather than followed halfway. Its settings for the longest text and
 * for padding do not matter here. */
#include "embed/transformer/minilm.h"

#include "base/json.h"

enum { PIECE_MAX_BYTES = 1024 };

static enum err bad_tokenizer(struct why *why, const char *field,
                              const char *wanted)
{
    return why_err(why, ERR_BAD_REQUEST,
                   "the tokenizer's \"%s\" is not supported: it "
                   "must be %s",
                   field, wanted);
}

static bool json_member_is(const struct json *v, const char *key,
                           const char *text)
{
    return str_eq(json_str_or(json_get(v, str_of(key)), STR("")), str_of(text));
}

static bool is_true(const struct json *v, const char *key)
{
    return json_bool_or(json_get(v, str_of(key)), false);
}

/* Accents are stripped along with lowercasing unless the file says otherwise.
 */
static bool is_our_normaliser(const struct json *v)
{
    const struct json *accents = json_get(v, STR("strip_accents"));

    return json_member_is(v, "type", "BertNormalizer") &&
           is_true(v, "clean_text") && is_true(v, "handle_chinese_chars") &&
           is_true(v, "lowercase") &&
           (!accents || accents->type == JSON_NULL ||
            json_bool_or(accents, false));
}

static bool is_our_model(const struct json *v)
{
    return json_member_is(v, "type", "WordPiece") &&
           json_member_is(v, "unk_token", "[UNK]") &&
           json_member_is(v, "continuing_subword_prefix", "##") &&
           json_int_or(json_get(v, STR("max_input_chars_per_word")), 0) ==
               WORD_MAX_CHARS;
}

static bool is_mark(const struct json *step, const char *name)
{
    return json_member_is(json_get(step, STR("SpecialToken")), "id", name);
}

/* [CLS] text [SEP] */
static bool is_our_template(const struct json *v)
{
    const struct json *steps = json_get(v, STR("single"));

    return json_member_is(v, "type", "TemplateProcessing") && steps &&
           steps->type == JSON_ARR && steps->kids.n == 3 &&
           is_mark(json_at(steps, 0), "[CLS]") &&
           json_member_is(json_get(json_at(steps, 1), STR("Sequence")), "id",
                          "A") &&
           is_mark(json_at(steps, 2), "[SEP]");
}

static enum err tokenizer_read_vocabulary(struct minilm_pieces *out,
                                          struct arena *a,
                                          const struct json *vocab,
                                          struct why *why)
{
    if (!vocab || vocab->type != JSON_OBJ || vocab->kids.n == 0 ||
        vocab->kids.n > MINILM_WORDS_MAX)
        return why_err(
            why, ERR_BAD_REQUEST,
            "the tokenizer's \"model.vocab\" is not an object of 1 to "
            "%d pieces",
            MINILM_WORDS_MAX);
    out->n = (uint32_t)vocab->kids.n;
    out->all = arena_array(a, out->n, sizeof(*out->all));
    if (!out->all)
        return why_err(why, ERR_NOMEM, "no memory for the vocabulary");
    JSON_EACH(kid, vocab)
    {
        int64_t id = json_int_or(kid, -1);

        if (id < 0 || id >= out->n || out->all[id].p || kid->key.n == 0 ||
            kid->key.n > PIECE_MAX_BYTES)
            return why_err(why, ERR_BAD_REQUEST,
                           "in the tokenizer's vocabulary \"%.*s\" has no "
                           "number of its own below %u, or an impossible "
                           "length",
                           STR_ARG(str_head(kid->key, 64)), out->n);
        out->all[id] = kid->key;
    }
    return OK;
}

static enum err tokenizer_find_mark(const struct json *vocab, const char *name,
                                    uint32_t *id, struct why *why)
{
    int64_t found = json_int_or(json_get(vocab, str_of(name)), -1);

    if (found < 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "the tokenizer's vocabulary has no %s", name);
    *id = (uint32_t)found;
    return OK;
}

static enum err tokenizer_read(struct minilm_pieces *out, struct arena *a,
                               const struct json *root, struct why *why)
{
    const struct json *model = json_get(root, STR("model"));
    const struct json *vocab = json_get(model, STR("vocab"));
    enum err e;

    if (!is_our_normaliser(json_get(root, STR("normalizer"))))
        return bad_tokenizer(
            why, "normalizer",
            "BertNormalizer with clean_text, handle_chinese_chars, "
            "lowercase and strip_accents");
    if (!json_member_is(json_get(root, STR("pre_tokenizer")), "type",
                        "BertPreTokenizer"))
        return bad_tokenizer(why, "pre_tokenizer", "BertPreTokenizer");
    if (!is_our_model(model))
        return bad_tokenizer(
            why, "model",
            "WordPiece with [UNK], ## and at most 100 characters a "
            "word");
    if (!is_our_template(json_get(root, STR("post_processor"))))
        return bad_tokenizer(why, "post_processor",
                             "TemplateProcessing with [CLS] A [SEP]");
    e = tokenizer_read_vocabulary(out, a, vocab, why);
    if (!e)
        e = tokenizer_find_mark(vocab, "[CLS]", &out->begin_id, why);
    if (!e)
        e = tokenizer_find_mark(vocab, "[SEP]", &out->end_id, why);
    if (!e)
        e = tokenizer_find_mark(vocab, "[UNK]", &out->unknown_id, why);
    return e;
}

enum err minilm_read_pieces(struct minilm_pieces *out, struct arena *a,
                            struct str tokenizer, struct why *why)
{
    struct json_error at;
    struct json *root = json_parse(a, tokenizer, 0, &at);

    *out = (struct minilm_pieces){0};
    if (!root)
        return why_err(why, ERR_BAD_REQUEST,
                       "the tokenizer is not JSON: %s in line %u, column %u",
                       at.what, at.line, at.col);
    return tokenizer_read(out, a, root, why);
}
