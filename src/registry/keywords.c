/* Which routing keywords occur in a text, for all agents at once.
 *
 *     "blog" of the platform       -> of press, of daily
 *     "blog post" of the platform  -> of writer
 *     "blog" of org acme           -> of theirs
 *     text, plain                  "draft a blog post about tea "
 *                                           ^ each of these is found here
 *
 * Keywords are found by their class and all their words. At each word of a
 * text, sequences of every length that keywords have are looked up, for each
 * class that counts for the requester, whatever the number of agents. The
 * definition is that of keyword.h; this finds the same for agents that are not
 * outsiders (agent_is_outsider).
 *
 * Public agents are in one more class, that of all users. There the keyword of
 * an outsider is found only if it is specific: if one of its words does not
 * occur in messages of all kinds. Such common words are stop words, phrases
 * that people say to every agent, numbers, and words in one of a hundred
 * reference texts.
 *
 * The nodes are in the entries and made with them, so putting an agent in and
 * taking it out cannot fail. A bucket holds the first node of each class and
 * words; the others are in a ring with it, so a lookup never walks over another
 * class. Buckets grow as they fill; without memory the chains grow instead.
 *
 * Lookups are bounded for each class apart. In the class of all users, one user
 * must not be able to exhaust the bound for the others by many keywords that
 * begin as messages do. So only keywords that occur in the text are walked
 * over, and only once. Keywords of more than KEYWORD_WORDS words are walked
 * over if they begin alike; an attacker must know that much of a text
 * beforehand. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "model/keyword.h"

enum {
    FIRST_BUCKETS = 64,
    PLAIN_BYTES = 256 * 1024, /* of a text of SEARCH_TEXT_MAX, at worst */
    STEPS_MAX = 100 * 1000,   /* for one class and one text */
    CLASSES = 4,              /* classes that one text is looked up for */
    COMMON_SHARE = 100,       /* one of so many reference texts */
    SCANNED_MAX = 64 << 20,   /* bytes of text, for all outsiders' keywords */
};

static struct list *buckets_new(size_t n)
{
    struct list *all =
        FAULT("registry.buckets") ? NULL : calloc(n, sizeof(*all));

    for (size_t i = 0; all && i < n; i++)
        list_init(&all[i]);
    return all;
}

static struct str first_word(struct str plain)
{
    return str_sub(plain, 0, str_find(plain, ' ', 0));
}

static int hash_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sort and remove duplicates; returns how many remain. */
static size_t sort_hashes(uint64_t *words, size_t n)
{
    size_t kept = 0;

    qsort(words, n, sizeof(*words), hash_order);
    for (size_t i = 0; i < n; i++)
        if (!kept || words[kept - 1] != words[i])
            words[kept++] = words[i];
    return kept;
}

/* Append the distinct words of one text to the n that are there. */
static size_t keyword_hash_text(struct registry *r, struct str text,
                                uint64_t *words, size_t n, size_t room)
{
    struct buf *plain = &r->keywords.plain;
    struct str rest;
    size_t end = n;

    buf_clear(plain);
    (void)keyword_plain(plain, text);
    for (rest = buf_str(plain); rest.n && end < room;)
        words[end++] = hash_bytes(str_cut(&rest, ' '), r->opts.seed);
    return n + sort_hashes(words + n, end - n);
}

/* Find the words in at least one of COMMON_SHARE reference texts. */
static enum err keywords_find_common(struct registry *r)
{
    const struct strs *texts = &r->opts.reference;
    struct keywords *k = &r->keywords;
    size_t room = 1, n = 0;

    for (size_t i = 0; i < texts->n; i++)
        room += texts->list[i].n + 1; /* a word has at least a byte */
    k->common =
        FAULT("registry.common") ? NULL : calloc(room, sizeof(*k->common));
    if (!k->common)
        return ERR_NOMEM;
    for (size_t i = 0; i < texts->n; i++)
        n = keyword_hash_text(r, texts->list[i], k->common, n, room);
    qsort(k->common, n, sizeof(*k->common), hash_order);
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && k->common[i + same] == k->common[i];)
            same++;
        if (same * COMMON_SHARE >= texts->n)
            k->common[k->n_common++] = k->common[i];
    }
    return OK;
}

static void note_term(void *ctx, struct str word, struct str stem)
{
    (void)word, (void)stem;
    *(bool *)ctx = true;
}

static bool is_stop_word(struct str word)
{
    bool is_term = false;

    index_terms(word, note_term, &is_term);
    return !is_term;
}

static bool has_letter(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if ((word.p[i] >= 'a' && word.p[i] <= 'z') || word.p[i] & 0x80)
            return true;
    return false;
}

static bool keyword_is_specific(const struct registry *r, struct str plain)
{
    const struct keywords *k = &r->keywords;

    while (plain.n) {
        struct str word = str_cut(&plain, ' ');
        uint64_t hash = hash_bytes(word, r->opts.seed);

        if (has_letter(word) && !keyword_is_everyday(word) &&
            !is_stop_word(word) &&
            !bsearch(&hash, k->common, k->n_common, sizeof(hash), hash_order))
            return true;
    }
    return false;
}

enum err keywords_open(struct registry *r)
{
    struct keywords *k = &r->keywords;

    buf_init(&k->plain, PLAIN_BYTES);
    k->serial = 1; /* entries begin with zero */
    k->buckets = buckets_new(FIRST_BUCKETS);
    k->n_buckets = FIRST_BUCKETS;
    return k->buckets ? keywords_find_common(r) : ERR_NOMEM;
}

void keywords_close(struct registry *r)
{
    buf_fini(&r->keywords.plain);
    free(r->keywords.buckets);
    free(r->keywords.common);
    r->keywords.buckets = NULL;
    r->keywords.common = NULL;
}

static struct list *keyword_bucket(const struct keywords *k, uint64_t hash)
{
    return &k->buckets[hash & (k->n_buckets - 1)];
}

/* Names of users ignore case, those of orgs do not. */
static uint64_t class_hash(const struct registry *r, char kind, struct str name)
{
    char key[PRINCIPAL_NAME_MAX + 1];
    size_t n = name.n < PRINCIPAL_NAME_MAX ? name.n : PRINCIPAL_NAME_MAX;

    key[0] = kind;
    for (size_t i = 0; i < n; i++)
        key[1 + i] = kind == 'u' ? str_lower(name.p[i]) : name.p[i];
    return hash_bytes((struct str){key, 1 + n}, r->opts.seed);
}

/* The classes of an agent; returns how many. As in agent_is_outsider, a member
 * of one of the first three is not an outsider. */
static size_t keyword_classes(const struct registry *r, const struct agent *a,
                              uint64_t out[3])
{
    size_t n = 0;

    if (a->kind == AGENT_PLATFORM || !a->creator.n) {
        out[0] = class_hash(r, 'p', STR(""));
        return 1;
    }
    out[n++] = class_hash(r, 'u', a->creator);
    if (a->org.n)
        out[n++] = class_hash(r, 'o', a->org);
    if (a->visibility == VISIBILITY_PUBLIC)
        out[n++] = class_hash(r, 'a', STR(""));
    return n;
}

/* The classes of a requester; the first is that of all users. */
static size_t keyword_classes_seen(const struct registry *r,
                                   const struct eyes *eyes,
                                   uint64_t out[CLASSES])
{
    size_t n = 0;

    out[n++] = class_hash(r, 'a', STR(""));
    out[n++] = class_hash(r, 'p', STR(""));
    if (eyes->user.n)
        out[n++] = class_hash(r, 'u', eyes->user);
    if (eyes->org.n)
        out[n++] = class_hash(r, 'o', eyes->org);
    return n;
}

static uint64_t keyword_hash_add(const struct registry *r, uint64_t words,
                                 struct str word)
{
    return (words ^ hash_bytes(word, r->opts.seed)) *
           UINT64_C(0x9e3779b97f4a7c15);
}

/* Add the keyword at that position, if it can occur. */
static enum err keyword_make(struct registry *r, struct entry *e,
                             uint32_t place)
{
    struct keywords *k = &r->keywords;
    struct keyword *one = &e->keywords[e->n_keywords];
    struct str rest;

    buf_clear(&k->plain);
    if (!keyword_plain(&k->plain, e->agent.routing.keywords.list[place]))
        return k->plain.over ? ERR_NOMEM : OK;
    if (k->plain.over ||
        !arena_keep(&e->arena, buf_str(&k->plain), &one->plain))
        return ERR_NOMEM;
    one->entry = e;
    one->word = hash_bytes(first_word(one->plain), r->opts.seed);
    for (rest = one->plain; rest.n && one->n_words < KEYWORD_WORDS;
         one->n_words++)
        one->words = keyword_hash_add(r, one->words, str_cut(&rest, ' '));
    one->is_specific = keyword_is_specific(r, one->plain);
    one->place = place;
    e->n_keywords++;
    return OK;
}

enum err keywords_make(struct registry *r, struct entry *e)
{
    size_t n = e->agent.routing.keywords.n;
    enum err err = OK;

    if (!n)
        return OK;
    e->keywords = arena_array(&e->arena, n, sizeof(*e->keywords));
    if (!e->keywords)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < n && !err; i++) {
        e->keywords[e->n_keywords] = (struct keyword){.entry = e};
        err = keyword_make(r, e, i);
    }
    return err;
}

static void keywords_grow(struct keywords *k, size_t n_buckets)
{
    struct list *before = k->buckets, *more = buckets_new(n_buckets);
    size_t n_before = k->n_buckets;
    struct list_node *n;

    if (!more)
        return;
    k->buckets = more;
    k->n_buckets = n_buckets;
    for (size_t i = 0; i < n_before; i++)
        while ((n = list_pop(&before[i])))
            list_append(keyword_bucket(
                            k, LIST_OF(n, struct keyword_node, bucket)->hash),
                        n);
    free(before);
}

/* NULL: no keyword of that class and words. */
static struct keyword_node *keyword_first_node(const struct keywords *k,
                                               uint64_t hash)
{
    struct list *bucket = keyword_bucket(k, hash);
    struct list_node *n = list_first(bucket);

    while (n && LIST_OF(n, struct keyword_node, bucket)->hash != hash)
        n = list_next(bucket, n);
    return n ? LIST_OF(n, struct keyword_node, bucket) : NULL;
}

static void keyword_put_node(struct keywords *k, struct keyword_node *node)
{
    struct keyword_node *first = keyword_first_node(k, node->hash);

    if (first) {
        list_insert_before(&first->ring, &node->ring);
        return;
    }
    node->ring.prev = node->ring.next = &node->ring;
    list_append(keyword_bucket(k, node->hash), &node->bucket);
    if (++k->n > 2 * k->n_buckets)
        keywords_grow(k, 4 * k->n_buckets);
}

/* If it was the first, the next one becomes the first. */
static void keyword_take_node(struct keywords *k, struct keyword_node *node)
{
    struct keyword_node *heir =
        LIST_OF(node->ring.next, struct keyword_node, ring);

    list_remove(&node->ring);
    if (!list_has(&node->bucket))
        return;
    list_remove(&node->bucket);
    if (heir == node)
        k->n--;
    else
        list_append(keyword_bucket(k, heir->hash), &heir->bucket);
}

void keywords_put(struct registry *r, struct entry *e)
{
    uint64_t classes[3];
    size_t n = keyword_classes(r, &e->agent, classes);

    for (size_t i = 0; i < e->n_keywords; i++) {
        struct keyword *one = &e->keywords[i];

        r->keywords.n_of[one->n_words]++;
        for (size_t k = 0; k < n; k++) {
            one->nodes[k] = (struct keyword_node){
                .hash = one->words ^ classes[k], .keyword = one};
            keyword_put_node(&r->keywords, &one->nodes[k]);
        }
    }
}

void keywords_take(struct registry *r, struct entry *e)
{
    for (size_t i = 0; i < e->n_keywords; i++) {
        struct keyword *one = &e->keywords[i];

        r->keywords.n_of[one->n_words]--;
        for (size_t k = 0; k < 3; k++)
            if (list_has(&one->nodes[k].ring))
                keyword_take_node(&r->keywords, &one->nodes[k]);
    }
}

static void keyword_note(struct registry *r, const struct keyword *one)
{
    const struct keywords *k = &r->keywords;
    struct entry *e = one->entry;

    r->near_marks[e->number].found_in = r->keywords.serial;
    if (e->found_in != k->serial || one->place < e->found_keyword)
        e->found_keyword = one->place;
    e->found_in = k->serial;
}

/* Keywords of one class that begin with the first n_words of `rest`.
 * everybodys: the class of all users. */
static void keywords_compare(struct registry *r,
                             const struct registry_near_query *q,
                             struct str rest, size_t n_words, uint64_t hash,
                             bool everybodys, size_t *left)
{
    struct keyword_node *first =
        *left ? keyword_first_node(&r->keywords, hash) : NULL;
    const struct keyword_node *one = first;

    *left -= *left > 0;
    if (first &&
        n_words < KEYWORD_WORDS) { /* the keyword has no further words */
        if (first->looked_in == r->keywords.serial)
            return;
        first->looked_in = r->keywords.serial;
    }
    while (one && *left) {
        --*left;
        /* In the class of all users, only outsiders are looked up. */
        if (str_starts(rest, one->keyword->plain) &&
            (!everybodys ||
             (agent_is_outsider(&one->keyword->entry->agent, &q->eyes) &&
              (q->trusts_all || one->keyword->is_specific ||
               PLANTED("keywords.any_word")))))
            keyword_note(r, one->keyword);
        one = LIST_OF(one->ring.next, struct keyword_node, ring);
        if (one == first)
            return;
    }
}

enum err keywords_look(struct registry *r, const struct registry_near_query *q)
{
    struct keywords *k = &r->keywords;
    uint64_t classes[CLASSES];
    size_t left[CLASSES] = {STEPS_MAX, STEPS_MAX, STEPS_MAX, STEPS_MAX};
    size_t n_classes = keyword_classes_seen(r, &q->eyes, classes);
    struct str rest;

    k->serial++;
    if (!k->n)
        return OK;
    buf_clear(&k->plain);
    keyword_plain(&k->plain, str_head(q->text, SEARCH_TEXT_MAX));
    if (k->plain.over)
        return ERR_NOMEM;
    rest = buf_str(&k->plain);
    while (rest.n) {
        struct str tail = rest;
        uint64_t words = 0;
        size_t most = KEYWORD_WORDS;

        while (most && !k->n_of[most])
            most--;
        for (size_t n = 1; n <= most && tail.n; n++) {
            words = keyword_hash_add(r, words, str_cut(&tail, ' '));
            for (size_t i = 0; k->n_of[n] && i < n_classes; i++)
                keywords_compare(r, q, rest, n, words ^ classes[i], i == 0,
                                 &left[i]);
        }
        (void)str_cut(&rest, ' ');
    }
    return OK;
}

/* Whether the words of a keyword occur side by side in a text. */
static bool keyword_is_in_text(struct str text, struct str plain)
{
    const char *at = text.p, *end = text.p + text.n;

    while ((at = memmem(at, (size_t)(end - at), plain.p, plain.n))) {
        if (at == text.p || at[-1] == ' ')
            return true;
        at++;
    }
    return false;
}

/* Only the preset "seed" looks at the keywords of all outsiders: at each once,
 * and closer if its first word may be in the text, which a bit for each word
 * tells. */
void keywords_look_at_all(struct registry *r, const struct eyes *eyes)
{
    struct str text = buf_str(&r->keywords.plain), rest = text;
    uint64_t words[1024] = {0};
    size_t left = SCANNED_MAX;

    if (!r->keywords.n)
        return; /* and the text was not prepared */
    while (rest.n) {
        struct str word = first_word(rest);
        uint64_t hash = hash_bytes(word, r->opts.seed);

        words[hash / 64 % 1024] |= UINT64_C(1) << hash % 64;
        rest = str_sub(rest, word.n + 1, rest.n);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = agent_entry(r->list[i]);

        if (!e->n_keywords || !agent_is_visible(&e->agent, eyes))
            continue;
        for (size_t k = 0; k < e->n_keywords; k++) {
            const struct keyword *one = &e->keywords[k];

            if (!(words[one->word / 64 % 1024] >> one->word % 64 & 1))
                continue;
            if (left < text.n)
                return;
            left -= text.n;
            if (keyword_is_in_text(text, one->plain))
                keyword_note(r, one);
        }
    }
}

struct str keyword_found(const struct registry *r, const struct entry *e)
{
    return e->found_in == r->keywords.serial
               ? e->agent.routing.keywords.list[e->found_keyword]
               : (struct str){NULL, 0};
}
