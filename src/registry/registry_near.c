/* All agents that could get a message, and the similarity of each.
 *
 * The index returns for every number how similar its words and its vectors are
 * to the text, and whether it is visible; here they become agents. With ten
 * thousand agents most of the time would be spent waiting for memory. So the
 * entries of agents that cannot be among the best are not touched:
 *
 *     guess    an upper bound of every score, from contiguous arrays
 *     floor    the exact scores of the FIRST best guesses: that of the last of
 *              the requested best, among agents that are there
 *     answer   all agents whose guess reaches the floor, exactly
 *
 * An agent that is left out scores lower than each of the best, so the result
 * equals that of computing all. If too few of the first are there for a floor,
 * no agent is left out.
 *
 * The cost of one query is bounded, however many cards say the same: exactly
 * computed are at most HOME_DOCS documents of agents at home with the
 * requester, STRANGER_DOCS of strangers, and CROWD_DOCS of all strangers with
 * more than CROWD_DOCS; in each case those with the best guesses. So a few
 * owners with very many skills neither slow down the others nor keep them out.
 * The floor is found with FLOOR_DOCS. */
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
    N_CROWDS = 4096, /* strangers by hash */
    N_LEVELS = 256,  /* of guesses */
};

static enum err near_make_room(struct registry *r)
{
    size_t n = r->n_numbers + r->n_numbers / 4 + 1;

    if (r->n > r->near_cap) {
        if (!REGISTRY_GROW(r->near, n))
            return ERR_NOMEM;
        r->near_cap = n;
    }
    if (r->n_numbers > r->marks_cap) {
        if (!REGISTRY_GROW(r->near_marks, n))
            return ERR_NOMEM;
        r->marks_cap = n;
        r->near_moves = UINT64_MAX;
    }
    return OK;
}

/* User names ignore case. Zero: no name. A hash collision makes a result
 * longer, not wrong. */
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

/* Whether agent_is_outsider may find it to be inside. */
static bool is_at_home(const struct near_mark *mark,
                       const struct near_mark *eyes)
{
    return mark->is_platform || (eyes->user && mark->user == eyes->user) ||
           (eyes->org && mark->org == eyes->org);
}

/* Rebuilt only when an agent has come, changed or gone. */
static void near_make_marks(struct registry *r)
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
 * alone; and 256 ordinary questions are near to every message. So only a part
 * of the lead of the best skill over the agent as a whole counts, which falls
 * with the number of skills:
 *
 *     part = sqrt(FREE_SKILLS / n)        with more than FREE_SKILLS skills
 *
 * The best of k cards has the same advantage, for the whole score:
 * log2(k) times CARDS_STEP is subtracted, up to CARDS_MOST.
 *
 * A card that scores high for messages of all kinds, by its level over the
 * reference texts, loses as much as its level is above that of a third of the
 * public agents.
 *
 * The keywords of a stranger could be "the", "what" and "please": only specific
 * ones are found (keywords.c). They could also be the words of every trade in
 * every language. So a keyword adds to the meaning of the card and does not
 * replace it: it counts where the text is nearer to the card than 95 % of the
 * reference texts are, and nowhere before that is known. */

enum { FREE_SKILLS = 4 };

static const double CARDS_STEP = 0.04, CARDS_MOST = 0.2, LEVEL_PART = 1;

static void discount_stranger(struct registry_near *near,
                              const struct index_near *x,
                              const struct index_fine *fine)
{
    double over = fine->n_skills > FREE_SKILLS
                      ? 1 - sqrt((double)FREE_SKILLS / (double)fine->n_skills)
                      : 0;

    near->has_discount = true;
    near->discount =
        (float)((double)x->generic +
                fmin(CARDS_STEP * log2((double)fine->n_cards), CARDS_MOST));
    if (x->cosine >= 0)
        near->cosine_over = (float)(over * (double)(x->cosine - fine->profile) +
                                    LEVEL_PART * (double)fine->over);
    near->text_over = (float)(over * (double)(x->text - fine->own_text));
    if ((x->cosine < 0 || x->level.high < 0 || x->cosine < x->level.high) &&
        !PLANTED("near.any_keyword"))
        near->keyword = STR("");
}

static struct registry_near
near_compute_fine(struct registry *r, const struct registry_near_query *q,
                  const struct index_near *near, uint32_t number)
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
        .keyword = keyword_found(r, e),
    };

    if (!q->is_seed && !q->trusts_all && agent_is_outsider(a, &q->eyes))
        discount_stranger(&out, x, fine);
    return out;
}

/* The next visible number. Among a hundred thousand agents of which a few
 * thousand are searched, walking over all of them would take longer than the
 * vectors. */
static bool next_seen(const struct registry *r, size_t n, uint32_t *number)
{
    const uint64_t *seen = index_near_seen(r->index);
    size_t at = *number, word = at / 64;
    uint64_t bits;

    if (at >= n)
        return false;
    bits = seen[word] & ~UINT64_C(0) << at % 64;
    while (!bits && ++word * 64 < n)
        bits = seen[word];
    if (!bits)
        return false;
    *number = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
    return *number < n;
}

/* Guess all scores; returns how many agents there are. */
static size_t near_guess_all(struct registry *r,
                             const struct registry_near_query *q,
                             const struct index_near *near, size_t n,
                             const struct entry *self)
{
    struct registry_near guess = {.number = 0};
    size_t n_all = 0;

    for (uint32_t i = 0; next_seen(r, n, &i); i++) {
        struct near_mark *mark = &r->near_marks[i];
        bool is_said = mark->found_in == r->keywords.serial;

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

struct first {
    double most;
    uint32_t number;
};

/* A heap with the least on top. */
static void first_sink(struct first *heap, size_t n, struct first one)
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

/* The FIRST best guesses of more than that, best first. */
static void near_find_first(const struct registry *r, size_t n,
                            struct first heap[FIRST])
{
    for (size_t i = 0; i < FIRST; i++)
        heap[i] = (struct first){(double)-INFINITY, 0};
    for (uint32_t i = 0; next_seen(r, n, &i); i++)
        if (r->near_marks[i].most > heap[0].most)
            first_sink(heap, FIRST, (struct first){r->near_marks[i].most, i});
    for (size_t i = FIRST; i-- > 1;) {
        struct first least = heap[0];

        first_sink(heap, i, heap[i]);
        heap[i] = least;
    }
}

static size_t best_scores_add(double *best, size_t n, size_t max, double score)
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

/* The score of the last of the best; zero: no floor. */
static double near_find_floor(struct registry *r,
                              const struct registry_near_query *q,
                              const struct index_near *near, size_t n_near)
{
    struct first first[FIRST];
    double best[FIRST];
    size_t n = 0, n_docs = 0;

    near_find_first(r, n_near, first);
    for (size_t i = 0; i < FIRST; i++) {
        struct registry_near one;

        if (n == q->best && first[i].most <= best[n - 1])
            break;
        n_docs += r->near_marks[first[i].number].n_docs;
        if (n_docs > FLOOR_DOCS && !PLANTED("near.no_bound"))
            break;
        one = near_compute_fine(r, q, near, first[i].number);
        if (registry_is_there(r, one.agent))
            n = best_scores_add(best, n, q->best, q->score(q->ctx, &one));
    }
    return n == q->best ? best[n - 1] : 0;
}

static int near_name_order(const void *a, const void *b)
{
    const struct registry_near *x = a, *y = b;

    return str_cmp_nocase(x->agent->name, y->agent->name);
}

static bool mark_is_in(const struct near_mark *mark)
{
    return mark->most > (double)-INFINITY;
}

enum kin { KIN_HOME, KIN_STRANGER, KIN_CROWD, N_KINS };

/* The documents of candidates, by the level of their guesses. */
struct fine_room {
    double low, high; /* of guesses */
    uint32_t of_stranger[N_CROWDS];
    size_t docs[N_KINS][N_LEVELS];
    size_t left[N_KINS]; /* at the level that has room for only some */
    int cut[N_KINS];     /* this one; there is room for everything above it */
};

/* The level of a ranked guess. */
static int guess_level(const struct fine_room *f, double most)
{
    double part = f->high > f->low ? (most - f->low) / (f->high - f->low) : 0;

    return part >= 1 ? N_LEVELS - 1 : (int)(part * N_LEVELS);
}

/* Whether the bound applies. An agent that a correction of this very text names
 * has an infinite guess: it is always computed, and there are only as many as
 * such corrections. */
static bool is_ranked(const struct near_mark *mark, double floor)
{
    return isfinite(mark->most) && mark->most >= floor;
}

static enum kin near_kin(const struct fine_room *f,
                         const struct near_mark *mark,
                         const struct near_mark *eyes)
{
    if (is_at_home(mark, eyes))
        return KIN_HOME;
    return f->of_stranger[mark->user % N_CROWDS] > CROWD_DOCS ? KIN_CROWD
                                                              : KIN_STRANGER;
}

/* Count the documents, and find the range of guesses. */
static size_t near_sum_docs(const struct registry *r,
                            const struct near_mark *eyes, size_t n_near,
                            double floor, struct fine_room *f)
{
    size_t sum = 0;

    f->low = (double)INFINITY;
    f->high = (double)-INFINITY;
    for (uint32_t i = 0; next_seen(r, n_near, &i); i++) {
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

/* Leave out candidates beyond the bound. */
static void near_leave_out(struct registry *r,
                           const struct registry_near_query *q, size_t n_near,
                           double floor)
{
    const struct near_mark eyes = {.user = user_hash(r, q->eyes.user),
                                   .org = org_hash(r, q->eyes.org)};
    struct fine_room f = {.low = 0};
    static const size_t most[N_KINS] = {HOME_DOCS, STRANGER_DOCS, CROWD_DOCS};

    if (near_sum_docs(r, &eyes, n_near, floor, &f) <= CROWD_DOCS ||
        PLANTED("near.no_bound"))
        return;
    for (uint32_t i = 0; next_seen(r, n_near, &i); i++) {
        const struct near_mark *mark = &r->near_marks[i];

        if (is_ranked(mark, floor))
            f.docs[near_kin(&f, mark, &eyes)][guess_level(&f, mark->most)] +=
                mark->n_docs;
    }
    for (int k = 0; k < N_KINS; k++) {
        int level = N_LEVELS - 1;

        f.left[k] = most[k];
        while (level >= 0 && f.docs[k][level] <= f.left[k])
            f.left[k] -= f.docs[k][level--];
        f.cut[k] = level;
    }
    for (uint32_t i = 0; next_seen(r, n_near, &i); i++) {
        struct near_mark *mark = &r->near_marks[i];
        enum kin kin;
        int level;

        if (!is_ranked(mark, floor))
            continue;
        kin = near_kin(&f, mark, &eyes);
        level = guess_level(&f, mark->most);
        if (level > f.cut[kin])
            continue;
        if (level < f.cut[kin] || f.left[kin] < mark->n_docs)
            mark->most = (double)-INFINITY;
        else
            f.left[kin] -= mark->n_docs;
    }
}

/* Strangers could fill the result with their cards. So if fewer than AT_HOME
 * agents in it are at home with the requester, the best others at home, by
 * their guesses, are added; returns how many. */
static size_t near_add_at_home(struct registry *r,
                               const struct registry_near_query *q,
                               const struct index_near *near, size_t n_near,
                               double floor, struct registry_near *out)
{
    const struct near_mark eyes = {.user = user_hash(r, q->eyes.user),
                                   .org = org_hash(r, q->eyes.org)};
    struct first best[AT_HOME];
    size_t n = 0, n_in = 0;

    for (uint32_t i = 0; next_seen(r, n_near, &i); i++)
        n_in += r->near_marks[i].most >= floor &&
                is_at_home(&r->near_marks[i], &eyes);
    for (uint32_t i = 0; n_in < AT_HOME && next_seen(r, n_near, &i); i++) {
        const struct near_mark *mark = &r->near_marks[i];
        size_t at = n;

        if (!mark_is_in(mark) || mark->most >= floor ||
            !is_at_home(mark, &eyes) ||
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
        out[i] = near_compute_fine(r, q, near, best[i].number);
    return n;
}

/* The agents from the floor on, and the best ones at home, by name. Without a
 * floor (zero): all candidates. */
static size_t near_list(struct registry *r, const struct registry_near_query *q,
                        const struct index_near *near, size_t n_near,
                        double floor)
{
    size_t n = 0;

    for (uint32_t i = 0; next_seen(r, n_near, &i); i++)
        if (floor > 0 ? r->near_marks[i].most >= floor
                      : mark_is_in(&r->near_marks[i]))
            r->near[n++] = near_compute_fine(r, q, near, i);
    if (floor > 0)
        n += near_add_at_home(r, q, near, n_near, floor, r->near + n);
    qsort(r->near, n, sizeof(*r->near), near_name_order);
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
    enum err e = near_make_room(r);

    *n = *n_left = 0;
    if (e)
        return e;
    vectors_learn(r); /* a message may be the first to notice other vectors */
    near_make_marks(r);
    e = keywords_look(r, q);
    if (!e && q->is_seed)
        keywords_look_at_all(r, &q->eyes);
    if (!e)
        e = ranked_near(r, q, &near, &n_near);
    if (e)
        return e;
    n_near = n_near < r->n_numbers ? n_near : r->n_numbers;
    n_all = near_guess_all(r, q, near, n_near, self);
    if (q->best && q->best < FIRST && n_all > FIRST)
        floor = near_find_floor(r, q, near, n_near);
    if (q->best)
        near_leave_out(r, q, n_near, floor > 0 ? floor : (double)-INFINITY);
    *n = near_list(r, q, near, n_near, floor);
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

    if (!o || o->question == question)
        return o && o->answer;
    o->question = question;
    o->answer = false;
    for (struct list_node *n = list_first(&o->entries); n && !o->answer;
         n = list_next(&o->entries, n))
        o->answer = is(ctx, LIST_OF(n, struct entry, owned)->number);
    return o->answer;
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
