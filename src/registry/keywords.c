/* Which routing keywords occur in a text, of all agents at once.
 *
 *     "blog" of the platform       -> of press, of daily
 *     "blog post" of the platform  -> of writer
 *     "blog" of org acme           -> of theirs
 *     text, plain                  "draft a blog post about tea "
 *                                           ^ each of these is found here
 *
 * Keywords are found by whose they are and all their words: from each word of a
 * text on, as many as there are keywords of are looked up, for each class that
 * counts for who asks, whatever the number of agents. What keyword.h says
 * decides; this gives the same, of those who are no outsiders
 * (agent_is_outsider).
 *
 * Public agents are in one class more, which is everybody's. There an
 * outsider's keyword is found if it is telling: if one of its words is not of
 * those that messages of all kinds have. Such are stop words, what people say
 * to every agent, numbers, and what is in one of a hundred reference texts.
 *
 * The nodes lie in the entries, made with them, so that putting an agent in and
 * taking it out cannot fail. In a bucket stands the first of each class and
 * words, the others are in a ring with it: nobody walks over another class's.
 * Buckets grow as they fill, and where there is no memory for that the chains
 * grow instead.
 *
 * There is an end to looking, for each class apart. In a class that is
 * everybody's nobody may bring it about for the others, with however many
 * keywords that begin as messages do: so only those that are in the text are
 * walked over, and these once. Of more than KEYWORD_WORDS words all that begin
 * alike are; whoever means them must know as much of a text beforehand. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "model/keyword.h"

enum {
    FIRST_BUCKETS = 64,
    PLAIN_BYTES = 256 * 1024, /* of a text of SEARCH_TEXT_MAX, at the worst */
    STEPS_MAX = 100 * 1000,   /* of one class, for one text */
    CLASSES = 4,              /* that one text is looked up for, at most */
    COMMON_SHARE = 100,       /* one of so many reference texts */
    SCANNED_MAX = 64 << 20,   /* bytes of text, for everybody's keywords */
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

/* Words that tell nothing. */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorted, each once; returns how many there are. */
static size_t sort_words(uint64_t *words, size_t n)
{
    size_t kept = 0;

    qsort(words, n, sizeof(*words), by_number);
    for (size_t i = 0; i < n; i++)
        if (!kept || words[kept - 1] != words[i])
            words[kept++] = words[i];
    return kept;
}

/* The words of one text behind the n that are there, each once. */
static size_t add_words(struct registry *r, struct str text, uint64_t *words,
                        size_t n, size_t room)
{
    struct buf *plain = &r->keywords.plain;
    struct str rest;
    size_t end = n;

    buf_clear(plain);
    (void)keyword_plain(plain, text);
    for (rest = buf_str(plain); rest.n && end < room;)
        words[end++] = hash_bytes(str_cut(&rest, ' '), r->opts.seed);
    return n + sort_words(words + n, end - n);
}

/* Those that are in one of COMMON_SHARE reference texts, or more. */
static enum err find_common(struct registry *r)
{
    const struct strs *texts = &r->opts.reference;
    struct keywords *k = &r->keywords;
    size_t room = 1, n = 0;

    for (size_t i = 0; i < texts->n; i++)
        room += texts->list[i].n + 1; /* a word has a byte, at least */
    k->common =
        FAULT("registry.common") ? NULL : calloc(room, sizeof(*k->common));
    if (!k->common)
        return ERR_NOMEM;
    for (size_t i = 0; i < texts->n; i++)
        n = add_words(r, texts->list[i], k->common, n, room);
    qsort(k->common, n, sizeof(*k->common), by_number);
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

    return index_terms(word, note_term, &is_term) && !is_term;
}

static bool has_letter(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if ((word.p[i] >= 'a' && word.p[i] <= 'z') || word.p[i] & 0x80)
            return true;
    return false;
}

static bool is_telling(const struct registry *r, struct str plain)
{
    const struct keywords *k = &r->keywords;

    while (plain.n) {
        struct str word = str_cut(&plain, ' ');
        uint64_t hash = hash_bytes(word, r->opts.seed);

        if (has_letter(word) && !keyword_is_everyday(word) &&
            !is_stop_word(word) &&
            !bsearch(&hash, k->common, k->n_common, sizeof(hash), by_number))
            return true;
    }
    return false;
}

/* Life and death. */

enum err keywords_open(struct registry *r)
{
    struct keywords *k = &r->keywords;

    buf_init(&k->plain, PLAIN_BYTES);
    k->serial = 1; /* entries begin with zero */
    k->buckets = buckets_new(FIRST_BUCKETS);
    k->n_buckets = FIRST_BUCKETS;
    return k->buckets ? find_common(r) : ERR_NOMEM;
}

void keywords_close(struct registry *r)
{
    buf_fini(&r->keywords.plain);
    free(r->keywords.buckets);
    free(r->keywords.common);
    r->keywords.buckets = NULL;
    r->keywords.common = NULL;
}

static struct list *bucket_of(const struct keywords *k, uint64_t hash)
{
    return &k->buckets[hash & (k->n_buckets - 1)];
}

/* Whose they are. */

/* Names of users are the same whatever their case, those of orgs are not. */
static uint64_t class_hash(const struct registry *r, char kind, struct str name)
{
    char key[PRINCIPAL_NAME_MAX + 1];
    size_t n = name.n < PRINCIPAL_NAME_MAX ? name.n : PRINCIPAL_NAME_MAX;

    key[0] = kind;
    for (size_t i = 0; i < n; i++)
        key[1 + i] = kind == 'u' ? str_lower(name.p[i]) : name.p[i];
    return hash_bytes((struct str){key, 1 + n}, r->opts.seed);
}

/* The classes of an agent, how many: as agent_is_outsider has it, whoever is
 * of one of the first three is at home with it. */
static size_t classes_of(const struct registry *r, const struct agent *a,
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

/* And those that somebody is of; first that of everybody. */
static size_t classes_seen(const struct registry *r, const struct eyes *eyes,
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

/* What is there. */

static uint64_t one_more(const struct registry *r, uint64_t words,
                         struct str word)
{
    return (words ^ hash_bytes(word, r->opts.seed)) *
           UINT64_C(0x9e3779b97f4a7c15);
}

/* Whether it is one that can occur. */
static enum err make(struct registry *r, struct entry *e, uint32_t place)
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
        one->words = one_more(r, one->words, str_cut(&rest, ' '));
    one->is_telling = is_telling(r, one->plain);
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
        err = make(r, e, i);
    }
    return err;
}

static void spread(struct keywords *k, size_t n_buckets)
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
            list_append(
                bucket_of(k, LIST_OF(n, struct keyword_node, bucket)->hash), n);
    free(before);
}

/* NULL: there are none of that class and words. */
static struct keyword_node *first_of(const struct keywords *k, uint64_t hash)
{
    struct list *bucket = bucket_of(k, hash);
    struct list_node *n = list_first(bucket);

    while (n && LIST_OF(n, struct keyword_node, bucket)->hash != hash)
        n = list_next(bucket, n);
    return n ? LIST_OF(n, struct keyword_node, bucket) : NULL;
}

static void put_node(struct keywords *k, struct keyword_node *node)
{
    struct keyword_node *first = first_of(k, node->hash);

    if (first) {
        list_insert_before(&first->ring, &node->ring);
        return;
    }
    node->ring.prev = node->ring.next = &node->ring;
    list_append(bucket_of(k, node->hash), &node->bucket);
    if (++k->n > 2 * k->n_buckets)
        spread(k, 4 * k->n_buckets);
}

/* If it was the first the next one is. */
static void take_node(struct keywords *k, struct keyword_node *node)
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
        list_append(bucket_of(k, heir->hash), &heir->bucket);
}

void keywords_put(struct registry *r, struct entry *e)
{
    uint64_t classes[3];
    size_t n = classes_of(r, &e->agent, classes);

    for (size_t i = 0; i < e->n_keywords; i++) {
        struct keyword *one = &e->keywords[i];

        r->keywords.n_of[one->n_words]++;
        for (size_t k = 0; k < n; k++) {
            one->nodes[k] = (struct keyword_node){
                .hash = one->words ^ classes[k], .keyword = one};
            put_node(&r->keywords, &one->nodes[k]);
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
                take_node(&r->keywords, &one->nodes[k]);
    }
}

/* Looking. */

static void note(struct registry *r, const struct keyword *one)
{
    const struct keywords *k = &r->keywords;
    struct entry *e = one->entry;

    r->near_marks[e->number].is_said = true;
    if (e->said_in != k->serial || one->place < e->said_place)
        e->said_place = one->place;
    e->said_in = k->serial;
}

/* Of those at home all count, by their own classes. */
static bool counts_for(const struct keyword *k,
                       const struct registry_near_query *q)
{
    return agent_is_outsider(&k->entry->agent, &q->eyes) &&
           (q->trusts_all || k->is_telling || PLANTED("keywords.any_word"));
}

/* Those of one class that begin with so many words of `rest`. everybodys: it is
 * not one that is at home with who asks. */
static void compare(struct registry *r, const struct registry_near_query *q,
                    struct str rest, size_t n_words, uint64_t hash,
                    bool everybodys, size_t *left)
{
    struct keyword_node *first = *left ? first_of(&r->keywords, hash) : NULL;
    const struct keyword_node *one = first;

    *left -= *left > 0;
    if (first && n_words < KEYWORD_WORDS) { /* there are no other words */
        if (first->looked_in == r->keywords.serial)
            return;
        first->looked_in = r->keywords.serial;
    }
    while (one && *left) {
        --*left;
        if (str_starts(rest, one->keyword->plain) &&
            (!everybodys || counts_for(one->keyword, q)))
            note(r, one->keyword);
        one = LIST_OF(one->ring.next, struct keyword_node, ring);
        if (one == first)
            return;
    }
}

/* Where `rest` begins, keywords of any number of words. */
static void look_here(struct registry *r, const struct registry_near_query *q,
                      struct str rest, const uint64_t *classes,
                      size_t n_classes, size_t *left)
{
    const struct keywords *k = &r->keywords;
    struct str tail = rest;
    uint64_t words = 0;
    size_t most = KEYWORD_WORDS;

    while (most && !k->n_of[most])
        most--;
    for (size_t n = 1; n <= most && tail.n; n++) {
        words = one_more(r, words, str_cut(&tail, ' '));
        for (size_t i = 0; k->n_of[n] && i < n_classes; i++)
            compare(r, q, rest, n, words ^ classes[i], i == 0, &left[i]);
    }
}

enum err keywords_look(struct registry *r, const struct registry_near_query *q)
{
    struct keywords *k = &r->keywords;
    uint64_t classes[CLASSES];
    size_t left[CLASSES] = {STEPS_MAX, STEPS_MAX, STEPS_MAX, STEPS_MAX};
    size_t n_classes = classes_seen(r, &q->eyes, classes);
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
        look_here(r, q, rest, classes, n_classes, left);
        (void)str_cut(&rest, ' ');
    }
    return OK;
}

/* Whether the words of a keyword stand side by side in a text. */
static bool occurs(struct str text, struct str plain)
{
    const char *at = text.p, *end = text.p + text.n;

    while ((at = memmem(at, (size_t)(end - at), plain.p, plain.n))) {
        if (at == text.p || at[-1] == ' ')
            return true;
        at++;
    }
    return false;
}

/* Only the preset "seed" looks at all outsiders' keywords: at every one once,
 * and closer at those whose first word may be in the text. A bit for each word
 * of it says so. */
void keywords_look_at_all(struct registry *r, const struct eyes *eyes)
{
    struct str text = buf_str(&r->keywords.plain), rest = text;
    uint64_t words[1024] = {0};
    size_t left = SCANNED_MAX;

    if (!r->keywords.n)
        return; /* and the text was not taken apart */
    while (rest.n) {
        struct str word = first_word(rest);
        uint64_t hash = hash_bytes(word, r->opts.seed);

        words[hash / 64 % 1024] |= UINT64_C(1) << hash % 64;
        rest = str_sub(rest, word.n + 1, rest.n);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = entry_of(r->list[i]);

        if (!e->n_keywords || !agent_is_visible(&e->agent, eyes))
            continue;
        for (size_t k = 0; k < e->n_keywords; k++) {
            const struct keyword *one = &e->keywords[k];

            if (!(words[one->word / 64 % 1024] >> one->word % 64 & 1))
                continue;
            if (left < text.n)
                return;
            left -= text.n;
            if (occurs(text, one->plain))
                note(r, one);
        }
    }
}

struct str keyword_said(const struct registry *r, const struct entry *e)
{
    return e->said_in == r->keywords.serial
               ? e->agent.routing.keywords.list[e->said_place]
               : (struct str){NULL, 0};
}
