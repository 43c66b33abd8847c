/* Everyone who could get a message, and how near it is to each.
 *
 * The index says of every number what its words and its meaning have in common
 * with the text, and who is seen; here they get their names. With ten thousand
 * agents most of the time would go into waiting for memory. So nobody's entry
 * is looked at who cannot be among the best:
 *
 *     guess    everyone's score, no less than it is, from what lies side by
 *              side
 *     floor    the fine scores of the FIRST best guesses: that of the last of
 *              the best asked for, of those that are there
 *     answer   all whose guess is no less than the floor, finely
 *
 * Whoever is left out has a lower score than each of the best, so what comes of
 * them is what would come of everyone. Where so few of the first are there that
 * there is no floor, nobody is left out.
 *
 * What one question costs is bounded, however many cards say the same: of
 * agents at home with the requester HOME_DOCS documents are computed finely, of
 * strangers STRANGER_DOCS, and of strangers with more than CROWD_DOCS that many
 * altogether; of those the agents with the best guesses. So a few owners with
 * very many skills neither slow down the others nor keep them out. The floor is
 * found with FLOOR_DOCS. */
#include "registry/internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum {
    FIRST = 128,
    AT_HOME = 8,
    HOME_DOCS = 4096,
    STRANGER_DOCS = 2048,
    CROWD_DOCS = 512, /* of one stranger; more are a crowd */
    FLOOR_DOCS = 1024,
    N_CROWDS = 4096, /* strangers by their hashes */
    N_LEVELS = 256,  /* of guesses */
};

static enum err near_room(struct registry *r)
{
    size_t n = r->n_numbers + r->n_numbers / 4 + 1;
    void *more;

    if (r->n > r->near_cap) {
        more = FAULT("registry.near") ? NULL
                                      : realloc(r->near, n * sizeof(*r->near));
        if (!more)
            return ERR_NOMEM;
        r->near = more;
        r->near_cap = n;
    }
    if (r->n_numbers > r->marks_cap) {
        more = FAULT("registry.marks")
                   ? NULL
                   : realloc(r->near_marks, n * sizeof(*r->near_marks));
        if (!more)
            return ERR_NOMEM;
        r->near_marks = more;
        r->marks_cap = n;
        r->near_moves = UINT64_MAX;
    }
    return OK;
}

/* Users' names are the same whatever their case. Zero: of none. Two that are
 * the same by chance make an answer longer, not wrong. */
static uint32_t user_hash(const struct registry *r, struct str name)
{
    char lower[PRINCIPAL_NAME_MAX];

    return name.n && name.n <= sizeof(lower)
               ? (uint32_t)hash_bytes(str_lowered(name, lower, sizeof(lower)),
                                      r->opts.seed) |
                     1
               : 0;
}

static uint32_t org_hash(const struct registry *r, struct str name)
{
    return name.n ? (uint32_t)hash_bytes(name, r->opts.seed) | 1 : 0;
}

/* Whether it is one that agent_is_outsider may find to be inside. */
static bool is_at_home(const struct near_mark *mark,
                       const struct near_mark *eyes)
{
    return mark->is_platform || (eyes->user && mark->user == eyes->user) ||
           (eyes->org && mark->org == eyes->org);
}

/* Again only when an agent has come, changed or gone. */
static void make_marks(struct registry *r)
{
    if (r->near_moves == r->n_moves)
        return;
    for (size_t i = 0; i < r->n_numbers; i++) {
        const struct entry *e = r->by_number[i];

        r->near_marks[i] =
            (struct near_mark){.is_there = e && !e->is_unroutable};
        if (!e)
            continue;
        r->near_marks[i].is_platform =
            e->agent.kind == AGENT_PLATFORM || !e->agent.creator.n;
        r->near_marks[i].n_docs = (uint32_t)e->agent.n_skills + 1;
        r->near_marks[i].user = user_hash(r, e->agent.creator);
        r->near_marks[i].org = org_hash(r, e->agent.org);
    }
    r->near_moves = r->n_moves;
}

/* Strangers.
 *
 * The best of n skills is nearer to any text than one skill is, by chance
 * alone; and 256 ordinary questions are near to every message. So of what the
 * best skill adds to the agent as a whole a part counts, that falls with the
 * number of skills:
 *
 *     part = sqrt(FREE_SKILLS / n)        of more than FREE_SKILLS skills
 *
 * The best of k cards is the same again, and there the whole score is the
 * chance: log2(k) times CARDS_STEP is taken off, up to CARDS_MOST.
 *
 * A card that scores high for messages of all kinds, by its level over the
 * reference texts, has that much less: by as much as its level is above those
 * of a third of the public agents.
 *
 * A stranger's keywords could be "the", "what" and "please": of such only those
 * are found that tell something (keywords.c). They could also be the words of
 * every trade there is, in every language. So a keyword adds to what the card
 * means and does not replace it: it counts where the text is nearer to the card
 * than nineteen in twenty of the reference texts are, and nowhere before that
 * is known. */

enum { FREE_SKILLS = 4 };

static const double CARDS_STEP = 0.04, CARDS_MOST = 0.2, LEVEL_PART = 1;

static double cards_off(uint32_t n_cards)
{
    double off = CARDS_STEP * log2((double)n_cards);

    return off < CARDS_MOST ? off : CARDS_MOST;
}

static bool is_near_enough(const struct index_near *x)
{
    return PLANTED("near.any_keyword") ||
           (x->cosine >= 0 && x->level.high >= 0 && x->cosine >= x->level.high);
}

static void discount_stranger(struct registry_near *near,
                              const struct index_near *x,
                              const struct index_fine *fine)
{
    double over = fine->n_skills > FREE_SKILLS
                      ? 1 - sqrt((double)FREE_SKILLS / (double)fine->n_skills)
                      : 0;

    near->has_discount = true;
    near->discount = (float)((double)x->generic + cards_off(fine->n_cards));
    if (x->cosine >= 0)
        near->cosine_over = (float)(over * (double)(x->cosine - fine->profile) +
                                    LEVEL_PART * (double)fine->over);
    near->text_over = (float)(over * (double)(x->text - fine->own_text));
    if (!is_near_enough(x))
        near->keyword = STR("");
}

static struct registry_near fine_near(struct registry *r,
                                      const struct registry_near_query *q,
                                      const struct index_near *near,
                                      uint32_t number)
{
    const struct index_fine *fine = index_near_fine(r->index, number);
    const struct index_near *x = &near[number];
    const struct entry *e = r->by_number[number];
    const struct agent *a = &e->agent;
    struct registry_near out = {
        .agent = a,
        .number = number,
        .skill = x->skill == INDEX_AGENT ? NULL : &a->skills[x->skill],
        .cosine = x->cosine,
        .text = x->text,
        .level = x->level,
        .keyword = keyword_said(r, e),
    };

    if (!q->is_seed && !q->trusts_all && agent_is_outsider(a, &q->eyes))
        discount_stranger(&out, x, fine);
    return out;
}

/* Everyone's guess; how many there are. */
static size_t guess_all(struct registry *r, const struct registry_near_query *q,
                        const struct index_near *near, size_t n,
                        const struct entry *self)
{
    struct registry_near guess = {.number = 0};
    size_t n_all = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct near_mark *mark = &r->near_marks[i];
        bool is_said = mark->is_said;

        mark->is_said = false;
        mark->most = (double)-INFINITY;
        if (!near[i].is_seen || !mark->is_there || (self && i == self->number))
            continue;
        guess.number = i;
        guess.cosine = near[i].cosine;
        guess.text = near[i].text;
        guess.level = near[i].level;
        guess.keyword = is_said ? STR("x") : STR("");
        mark->most = q->best ? q->score(q->ctx, &guess) : 0;
        n_all++;
    }
    return n_all;
}

/* The floor. */

struct first {
    double most;
    uint32_t number;
};

/* A heap, the least on top. */
static void sink(struct first *heap, size_t n, struct first one)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < n) {
        if (child + 1 < n && heap[child + 1].most < heap[child].most)
            child++;
        if (!(heap[child].most < one.most))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

/* The FIRST best guesses of more than that, the best one first. */
static void find_first(const struct registry *r, size_t n,
                       struct first heap[FIRST])
{
    for (size_t i = 0; i < FIRST; i++)
        heap[i] = (struct first){(double)-INFINITY, 0};
    for (uint32_t i = 0; i < n; i++)
        if (r->near_marks[i].most > heap[0].most)
            sink(heap, FIRST, (struct first){r->near_marks[i].most, i});
    for (size_t i = FIRST; i-- > 1;) {
        struct first least = heap[0];

        sink(heap, i, heap[i]);
        heap[i] = least;
    }
}

static size_t keep_score(double *best, size_t n, size_t max, double score)
{
    size_t at = n;

    if (n < max)
        n++;
    else if (best[--at] >= score)
        return n;
    for (; at > 0 && best[at - 1] < score; at--)
        best[at] = best[at - 1];
    best[at] = score;
    return n;
}

/* What the last of the best has, or everybody has more. */
static double find_floor(struct registry *r,
                         const struct registry_near_query *q,
                         const struct index_near *near, size_t n_near)
{
    struct first first[FIRST];
    double best[FIRST];
    size_t n = 0, n_docs = 0;

    find_first(r, n_near, first);
    for (size_t i = 0; i < FIRST; i++) {
        struct registry_near one;

        if (n == q->best && first[i].most <= best[n - 1])
            break;
        n_docs += r->near_marks[first[i].number].n_docs;
        if (n_docs > FLOOR_DOCS && !PLANTED("near.no_bound"))
            break;
        one = fine_near(r, q, near, first[i].number);
        if (registry_is_there(r, one.agent))
            n = keep_score(best, n, q->best, q->score(q->ctx, &one));
    }
    return n == q->best ? best[n - 1] : 0;
}

/* The answer. */

static int by_their_names(const void *a, const void *b)
{
    const struct registry_near *x = a, *y = b;

    return str_cmp_nocase(x->agent->name, y->agent->name);
}

static bool is_in(const struct near_mark *mark)
{
    return mark->most > (double)-INFINITY;
}

/* What may be computed finely. */

enum kin { KIN_HOME, KIN_STRANGER, KIN_CROWD, N_KINS };

/* Of agents that are to be in the answer: by the level of their guesses. */
struct fine_room {
    double low, high; /* of guesses */
    uint32_t of_stranger[N_CROWDS];
    size_t docs[N_KINS][N_LEVELS];
    size_t left[N_KINS]; /* at the level that only has room for some, */
    int cut[N_KINS];     /* which is this one; above it there is for all */
};

/* Of one that is_ranked. */
static int level_of(const struct fine_room *f, double most)
{
    double part = f->high > f->low ? (most - f->low) / (f->high - f->low) : 0;

    return part >= 1 ? N_LEVELS - 1 : (int)(part * N_LEVELS);
}

/* Whether the bound is about it. An agent that a correction of this very text
 * names has an infinite guess: it is always computed, and there are as few of
 * these as there are such corrections. */
static bool is_ranked(const struct near_mark *mark, double floor)
{
    return isfinite(mark->most) && mark->most >= floor;
}

static enum kin kin_of(const struct fine_room *f, const struct near_mark *mark,
                       const struct near_mark *eyes)
{
    if (is_at_home(mark, eyes))
        return KIN_HOME;
    return f->of_stranger[mark->user % N_CROWDS] > CROWD_DOCS ? KIN_CROWD
                                                              : KIN_STRANGER;
}

/* How many documents there are, and between which guesses. */
static size_t sum_docs(const struct registry *r, const struct near_mark *eyes,
                       size_t n_near, double floor, struct fine_room *f)
{
    size_t sum = 0;

    f->low = (double)INFINITY;
    f->high = (double)-INFINITY;
    for (size_t i = 0; i < n_near; i++) {
        const struct near_mark *mark = &r->near_marks[i];

        if (!is_ranked(mark, floor))
            continue;
        sum += mark->n_docs;
        f->low = mark->most < f->low ? mark->most : f->low;
        f->high = mark->most > f->high ? mark->most : f->high;
        if (!is_at_home(mark, eyes))
            f->of_stranger[mark->user % N_CROWDS] += mark->n_docs;
    }
    return sum;
}

static void find_cuts(struct fine_room *f)
{
    static const size_t most[N_KINS] = {HOME_DOCS, STRANGER_DOCS, CROWD_DOCS};

    for (int k = 0; k < N_KINS; k++) {
        int level = N_LEVELS - 1;

        f->left[k] = most[k];
        while (level >= 0 && f->docs[k][level] <= f->left[k])
            f->left[k] -= f->docs[k][level--];
        f->cut[k] = level;
    }
}

/* Leave out what there is no room for. */
static void leave_out(struct registry *r, const struct registry_near_query *q,
                      size_t n_near, double floor)
{
    const struct near_mark eyes = {.user = user_hash(r, q->eyes.user),
                                   .org = org_hash(r, q->eyes.org)};
    struct fine_room f = {.low = 0};

    if (sum_docs(r, &eyes, n_near, floor, &f) <= CROWD_DOCS ||
        PLANTED("near.no_bound"))
        return;
    for (size_t i = 0; i < n_near; i++) {
        const struct near_mark *mark = &r->near_marks[i];

        if (is_ranked(mark, floor))
            f.docs[kin_of(&f, mark, &eyes)][level_of(&f, mark->most)] +=
                mark->n_docs;
    }
    find_cuts(&f);
    for (size_t i = 0; i < n_near; i++) {
        struct near_mark *mark = &r->near_marks[i];
        enum kin kin = kin_of(&f, mark, &eyes);
        int level;

        if (!is_ranked(mark, floor))
            continue;
        level = level_of(&f, mark->most);
        if (level > f.cut[kin])
            continue;
        if (level < f.cut[kin] || f.left[kin] < mark->n_docs)
            mark->most = (double)-INFINITY;
        else
            f.left[kin] -= mark->n_docs;
    }
}

/* In the order of the list, which is that of the names. */
static size_t answer_all(struct registry *r,
                         const struct registry_near_query *q,
                         const struct index_near *near, size_t n_near)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        uint32_t number = entry_of(r->list[i])->number;

        if (number < n_near && is_in(&r->near_marks[number]))
            r->near[n++] = fine_near(r, q, near, number);
    }
    return n;
}

/* Strangers could fill the answer with their cards. So where fewer than AT_HOME
 * of those in it are at home with the requester, the best others that are, by
 * their guesses, are in it besides; how many. */
static size_t add_at_home(struct registry *r,
                          const struct registry_near_query *q,
                          const struct index_near *near, size_t n_near,
                          double floor, struct registry_near *out)
{
    const struct near_mark eyes = {.user = user_hash(r, q->eyes.user),
                                   .org = org_hash(r, q->eyes.org)};
    struct first best[AT_HOME];
    size_t n = 0, n_in = 0;

    for (uint32_t i = 0; i < n_near; i++)
        n_in += r->near_marks[i].most >= floor &&
                is_at_home(&r->near_marks[i], &eyes);
    for (uint32_t i = 0; n_in < AT_HOME && i < n_near; i++) {
        const struct near_mark *mark = &r->near_marks[i];
        size_t at = n;

        if (!is_in(mark) || mark->most >= floor || !is_at_home(mark, &eyes) ||
            (n == AT_HOME && mark->most <= best[n - 1].most))
            continue;
        if (n < AT_HOME)
            n++;
        else
            at--;
        for (; at > 0 && best[at - 1].most < mark->most; at--)
            best[at] = best[at - 1];
        best[at] = (struct first){mark->most, i};
    }
    for (size_t i = 0; i < n; i++)
        out[i] = fine_near(r, q, near, best[i].number);
    return n;
}

static size_t answer_best(struct registry *r,
                          const struct registry_near_query *q,
                          const struct index_near *near, size_t n_near,
                          double floor)
{
    size_t n = 0;

    for (uint32_t i = 0; i < n_near; i++)
        if (r->near_marks[i].most >= floor)
            r->near[n++] = fine_near(r, q, near, i);
    n += add_at_home(r, q, near, n_near, floor, r->near + n);
    qsort(r->near, n, sizeof(*r->near), by_their_names);
    return n;
}

enum err registry_near(struct registry *r, const struct registry_near_query *q,
                       const struct registry_near **list, size_t *n,
                       size_t *n_left)
{
    const struct entry *self =
        q->eyes.self.n ? entry_find(r, q->eyes.self) : NULL;
    const struct index_near *near;
    size_t n_near, n_all;
    double floor = 0;
    enum err e = near_room(r);

    *n = *n_left = 0;
    if (e)
        return e;
    vectors_learn(r); /* a message may be the first to hear of other vectors */
    make_marks(r);
    e = keywords_look(r, q);
    if (!e && q->is_seed)
        keywords_look_at_all(r, &q->eyes);
    if (!e)
        e = ranked_near(r, q, &near, &n_near);
    if (e)
        return e;
    n_near = n_near < r->n_numbers ? n_near : r->n_numbers;
    n_all = guess_all(r, q, near, n_near, self);
    if (q->best && q->best < FIRST && n_all > FIRST)
        floor = find_floor(r, q, near, n_near);
    if (q->best)
        leave_out(r, q, n_near, floor > 0 ? floor : (double)-INFINITY);
    *n = floor > 0 ? answer_best(r, q, near, n_near, floor)
                   : answer_all(r, q, near, n_near);
    *n_left = n_all - *n;
    *list = r->near;
    return OK;
}

bool registry_number(const struct registry *r, struct str name, uint32_t *out)
{
    const struct entry *e = entry_find(r, name);

    if (e)
        *out = e->number;
    return e != NULL;
}

struct card_level registry_level(const struct registry *r, struct str name)
{
    const struct entry *e = entry_find(r, name);

    return e ? index_level(r->index, e->number) : (struct card_level){-1, -1};
}

struct card_level registry_quick_level(const struct registry *r,
                                       struct str name)
{
    const struct entry *e = entry_find(r, name);

    return e ? index_quick_level(r->index, e->number)
             : (struct card_level){-1, -1};
}

uint64_t registry_moves(const struct registry *r)
{
    return r->n_moves;
}

const struct agent *registry_at(const struct registry *r, uint32_t number)
{
    const struct entry *e = number < r->n_numbers ? r->by_number[number] : NULL;

    return e ? &e->agent : NULL;
}

bool registry_any_of(const struct registry *r, struct str creator,
                     uint64_t question, bool (*is)(void *ctx, uint32_t number),
                     void *ctx)
{
    struct owner *o = owner_find(r, creator);

    if (!o || o->asked == question)
        return o && o->is_so;
    o->asked = question;
    o->is_so = false;
    for (struct list_node *n = list_first(&o->entries); n && !o->is_so;
         n = list_next(&o->entries, n))
        o->is_so = is(ctx, LIST_OF(n, struct entry, owned)->number);
    return o->is_so;
}

size_t registry_numbers(const struct registry *r)
{
    return r->n_numbers;
}

bool registry_is_there(void *ctx, const struct agent *a)
{
    return registry_state(ctx, a) != AGENT_DEAD;
}

int64_t registry_version(const struct registry *r)
{
    return r->seq;
}
