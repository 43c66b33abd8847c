/* Random changes, several at once, with restarts in between, against a slow
 * truth: plain arrays that only change when something was settled as done. */
#include "test/lib/access_stage.h"

enum {
    NAMES = 100,
    TOKENS_MAX = 6000,
    STEPS = 1000,
    AT_ONCE = 4,
};

enum { NAME_BYTES = 16, NO_OWNER = -1, AS_IT_IS = -2 };

struct truth_user {
    char name[NAME_BYTES]; /* as it will be shown */
    bool is_there, was_removed;
    enum role role;
    const char *org;
    int owner; /* NO_OWNER: none */
};

struct truth_token {
    struct access_token text;
    struct id id;
    int user;
    unsigned scopes;
    int64_t expires_ms;
    bool is_there;
    struct caller seen; /* as it was last judged good */
};

struct world {
    struct stage s;
    struct rand_seeded chance;
    struct truth_user users[NAMES];
    struct truth_token *tokens;
    size_t n_tokens, n_revoked;
};

/* One change under way. */
struct attempt {
    struct access_change c;
    enum access_change_kind kind;
    enum err prepared;
    int user;
    enum role role;
    const char *org;
    int owner;
    size_t token; /* which one it makes or revokes */
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)(rand_u64(rand_seeded(&w->chance)) % n);
}

/* A name in some case. */
static struct str some_case(struct world *w, int user, char out[NAME_BYTES])
{
    const char *name = w->users[user].name;
    size_t n = strlen(name);

    for (size_t i = 0; i <= n; i++) {
        char c = name[i];
        bool is_letter = str_lower(c) >= 'a' && str_lower(c) <= 'z';

        out[i] = is_letter && below(w, 2) ? (char)(c ^ 0x20) : c;
    }
    return (struct str){out, n};
}

static struct access_wish wish_of(struct world *w, const struct attempt *t,
                                  char owner[NAME_BYTES])
{
    struct access_wish wish = {.role = t->role};

    if (t->org)
        wish.org = str_of(t->org);
    if (t->owner == NO_OWNER)
        wish.owner = STR("");
    else if (t->owner != AS_IT_IS)
        wish.owner = some_case(w, t->owner, owner);
    return wish;
}

static void attempt_user(struct world *w, struct attempt *t)
{
    static const char *const orgs[] = {"", "acme", "Zeta"};
    struct stage *s = &w->s;
    struct str by = STR("admin"), name;
    char text[NAME_BYTES], owner[NAME_BYTES];
    struct access_wish wish;

    t->user = (int)below(w, NAMES);
    t->role = (enum role)(1 + below(w, 3));
    t->org = orgs[below(w, 3)];
    t->owner = AS_IT_IS;
    name = some_case(w, t->user, text);
    switch (below(w, 24)) {
    case 0 ... 1:
        t->kind = ACCESS_USER_REMOVE;
        t->prepared =
            access_user_remove(s->a, &t->c, name, by, s->now_ms, NULL);
        break;
    case 2 ... 4:
        t->kind = ACCESS_USER_CHANGE;
        t->org = NULL;
        wish = wish_of(w, t, owner);
        t->prepared =
            access_user_change(s->a, &t->c, name, &wish, by, s->now_ms, NULL);
        break;
    case 5 ... 8:
        t->kind = ACCESS_USER_CHANGE;
        t->role = 0;
        wish = wish_of(w, t, owner);
        t->prepared =
            access_user_change(s->a, &t->c, name, &wish, by, s->now_ms, NULL);
        break;
    case 9 ... 13:
        t->kind = ACCESS_USER_CHANGE;
        t->role = below(w, 2) ? ROLE_AGENT : 0;
        t->org = NULL;
        t->owner = below(w, 4) ? (int)below(w, NAMES) : NO_OWNER;
        wish = wish_of(w, t, owner);
        t->prepared =
            access_user_change(s->a, &t->c, name, &wish, by, s->now_ms, NULL);
        break;
    default:
        /* The first to come writes the name as it will be shown. */
        t->kind = ACCESS_USER_CREATE;
        t->owner = t->role == ROLE_AGENT && below(w, 3) ? (int)below(w, NAMES)
                                                        : NO_OWNER;
        wish = wish_of(w, t, owner);
        t->prepared =
            access_user_create(s->a, &t->c, str_of(w->users[t->user].name),
                               &wish, by, s->now_ms, NULL);
        break;
    }
}

static void attempt_token(struct world *w, struct attempt *t)
{
    struct stage *s = &w->s;
    struct truth_token *made = &w->tokens[w->n_tokens];
    char text[NAME_BYTES];

    if (below(w, 3) == 0) {
        t->kind = ACCESS_TOKEN_REVOKE;
        t->token = below(w, (unsigned)w->n_tokens);
        t->prepared = access_token_revoke(s->a, &t->c,
                                          str_of(w->tokens[t->token].id.text),
                                          &stage_admin, s->now_ms, NULL);
        return;
    }
    CHECK(w->n_tokens < TOKENS_MAX);
    t->kind = ACCESS_TOKEN_CREATE;
    t->token = w->n_tokens;
    *made = (struct truth_token){
        .user = (int)below(w, NAMES),
        .scopes = below(w, 2) ? 0 : below(w, SCOPE_ALL + 1),
        .expires_ms = below(w, 2) ? 0 : s->now_ms + 1 + below(w, 50)};
    t->prepared = access_token_create(
        s->a, &t->c, some_case(w, made->user, text), made->scopes, STR(""),
        made->expires_ms, STR("admin"), s->now_ms, &made->text, NULL);
    if (t->prepared == OK) {
        made->id = t->c.token_id;
        made->scopes = t->c.scopes;
        w->n_tokens++;
    }
}

static size_t n_admins(const struct world *w)
{
    size_t n = 0;

    for (int i = 0; i < NAMES; i++)
        n += w->users[i].is_there && w->users[i].role == ROLE_ADMIN;
    return n;
}

/* Whether another user could still call as an admin. */
static bool is_last_admin(const struct world *w, const struct truth_user *u)
{
    for (size_t i = 0; i < w->n_tokens; i++) {
        const struct truth_token *t = &w->tokens[i];
        const struct truth_user *other = &w->users[t->user];

        if (other != u && t->is_there && other->role == ROLE_ADMIN &&
            (t->scopes & SCOPE_ADMIN) &&
            (!t->expires_ms || w->s.now_ms < t->expires_ms))
            return false;
    }
    return true;
}

/* Where a user belongs, also once they were removed. */
static const char *org_of(const struct world *w, const struct truth_user *u)
{
    return u->owner == NO_OWNER ? u->org : w->users[u->owner].org;
}

static bool is_orphan(const struct world *w, const struct truth_user *u)
{
    return u->owner != NO_OWNER && !w->users[u->owner].is_there;
}

static bool owns_any(const struct world *w, int user)
{
    for (int i = 0; i < NAMES; i++)
        if (w->users[i].is_there && w->users[i].owner == user)
            return true;
    return false;
}

static void drop_tokens(struct world *w, int user)
{
    for (size_t i = 0; i < w->n_tokens; i++)
        if (w->tokens[i].user == user && w->tokens[i].is_there) {
            w->tokens[i].is_there = false;
            w->n_revoked++;
        }
}

static void remove_user(struct world *w, int user)
{
    struct truth_user *u = &w->users[user];

    u->org = org_of(w, u);
    u->owner = NO_OWNER;
    u->is_there = false;
    u->was_removed = true;
    drop_tokens(w, user);
    for (int i = 0; i < NAMES; i++)
        if (w->users[i].is_there && w->users[i].owner == user)
            drop_tokens(w, i);
}

static void change_user(struct truth_user *u, const struct attempt *t)
{
    u->role = t->role ? t->role : u->role;
    if (t->owner != AS_IT_IS)
        u->owner = t->owner;
    else if (u->role != ROLE_AGENT)
        u->owner = NO_OWNER;
    if (u->owner != NO_OWNER)
        u->org = "";
    else if (t->org)
        u->org = t->org;
}

/* What was settled as done, done to the truth. */
static void follow(struct world *w, const struct attempt *t)
{
    struct truth_user *u = &w->users[t->user];

    switch (t->kind) {
    case ACCESS_USER_CREATE:
        CHECK(!u->is_there && !u->was_removed);
        u->is_there = true;
        u->role = t->role;
        u->org = t->org;
        u->owner = t->owner;
        break;
    case ACCESS_USER_CHANGE:
        CHECK(u->is_there);
        change_user(u, t);
        break;
    case ACCESS_USER_REMOVE:
        CHECK(u->is_there);
        remove_user(w, t->user);
        break;
    case ACCESS_TOKEN_CREATE:
        u = &w->users[w->tokens[t->token].user];
        CHECK(u->is_there && !is_orphan(w, u));
        w->tokens[t->token].is_there = true;
        break;
    case ACCESS_TOKEN_REVOKE:
        CHECK(w->tokens[t->token].is_there);
        w->tokens[t->token].is_there = false;
        w->n_revoked++;
        break;
    }
    CHECK(n_admins(w) >= 1);
}

/* What the truth says of the owner that a user is to have. */
static enum err expected_owner(const struct world *w, const struct attempt *t)
{
    const struct truth_user *u = &w->users[t->user];
    enum role role = t->role ? t->role : u->role;
    int owner = t->owner;

    if (owner == AS_IT_IS)
        owner = u->is_there && role == ROLE_AGENT ? u->owner : NO_OWNER;
    if (role == ROLE_AGENT && u->is_there && owns_any(w, t->user))
        return ERR_NOT_ALLOWED;
    if (owner == NO_OWNER)
        return OK;
    if (role != ROLE_AGENT || (t->org && t->org[0]))
        return ERR_BAD_REQUEST;
    if (u->is_there && owner == u->owner)
        return OK;
    return w->users[owner].is_there && w->users[owner].role != ROLE_AGENT &&
                   owner != t->user
               ? OK
               : ERR_BAD_REQUEST;
}

/* The expected result of a change when no other change is pending. */
static enum err expected(const struct world *w, const struct attempt *t)
{
    const struct truth_token *token = &w->tokens[t->token];
    const struct truth_user *u = &w->users[t->user];

    if (t->kind == ACCESS_TOKEN_REVOKE)
        return token->is_there ? OK : ERR_NOT_FOUND;
    if (t->kind == ACCESS_TOKEN_CREATE)
        u = &w->users[token->user];
    if (t->kind == ACCESS_USER_CREATE && u->is_there)
        return ERR_EXISTS;
    if (t->kind == ACCESS_USER_CREATE && expected_owner(w, t))
        return expected_owner(w, t);
    if (t->kind == ACCESS_USER_CREATE)
        return u->was_removed ? ERR_EXISTS : OK;
    if (!u->is_there)
        return ERR_NOT_FOUND;
    if (t->kind == ACCESS_TOKEN_CREATE)
        return is_orphan(w, u) || (token->scopes & ~role_may(u->role))
                   ? ERR_NOT_ALLOWED
                   : OK;
    if (t->kind == ACCESS_USER_CHANGE && expected_owner(w, t))
        return expected_owner(w, t);
    if (u->role == ROLE_ADMIN && is_last_admin(w, u) &&
        (t->kind == ACCESS_USER_REMOVE || (t->role && t->role != ROLE_ADMIN)))
        return ERR_NOT_ALLOWED;
    return OK;
}

/* Prepare some at once, submit and settle them in order. */
static void step(struct world *w)
{
    struct attempt t[AT_ONCE];
    size_t n = 1 + below(w, AT_ONCE);

    for (size_t i = 0; i < n; i++) {
        t[i] = (struct attempt){.token = 0};
        access_change_init(&t[i].c);
        if (below(w, 3))
            attempt_token(w, &t[i]);
        else
            attempt_user(w, &t[i]);
        if (t[i].prepared == OK)
            stage_submit(&w->s, &t[i].c);
    }
    store_turn(w->s.store);
    for (size_t i = 0; i < n; i++) {
        enum err e = t[i].prepared;

        if (!e)
            e = access_settle(w->s.a, &t[i].c, NULL);
        if (n == 1)
            CHECK_INT(e, expected(w, &t[i]));
        if (e == OK)
            follow(w, &t[i]);
        access_change_fini(&t[i].c);
    }
}

static const char *owner_name(const struct world *w, const struct truth_user *u)
{
    return u->owner == NO_OWNER ? "" : w->users[u->owner].name;
}

/* Compare every token there ever was. */
static void compare(struct world *w)
{
    struct stage *s = &w->s;
    int64_t users = 0, tokens = 0;

    for (size_t i = 0; i < w->n_tokens; i++) {
        struct truth_token *t = &w->tokens[i];
        const struct truth_user *u = &w->users[t->user];
        bool is_good =
            t->is_there && (!t->expires_ms || s->now_ms < t->expires_ms);
        bool is_same = is_good && u->role == t->seen.role &&
                       (t->scopes & role_may(u->role)) == t->seen.scopes &&
                       strcmp(owner_name(w, u), t->seen.owner) == 0 &&
                       strcmp(org_of(w, u), t->seen.org) == 0;
        struct caller c;

        tokens += t->is_there;
        if (t->seen.token_id.text[0])
            CHECK(access_is_good(s->a, &t->seen, s->now_ms) == is_same);
        CHECK(stage_judge(s, &t->text, &c) ==
              (is_good ? OK : ERR_UNAUTHENTICATED));
        if (!is_good)
            continue;
        CHECK(strcmp(c.principal, u->name) == 0);
        CHECK(strcmp(c.org, org_of(w, u)) == 0 && c.role == u->role);
        CHECK(strcmp(c.owner, owner_name(w, u)) == 0);
        CHECK_INT(c.scopes, t->scopes & role_may(u->role));
        CHECK(strcmp(c.token_id.text, t->id.text) == 0);
        t->seen = c;
    }
    for (int i = 0; i < NAMES; i++) {
        const struct truth_user *u = &w->users[i];

        users += u->is_there;
        if (u->is_there || u->was_removed)
            CHECK_STR(access_org_of(s->a, str_of(u->name)), org_of(w, u));
    }
    CHECK_INT(access_stats(s->a).users, users);
    CHECK_INT(access_stats(s->a).tokens, tokens);
    CHECK_INT(s->n_revoked, w->n_revoked);
}

static void live(uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    struct truth_token *first;

    CHECK(w && (w->tokens = calloc(TOKENS_MAX, sizeof(*w->tokens))));
    w->chance.state = seed;
    stage_open(&w->s);
    first = &w->tokens[w->n_tokens++];
    CHECK(stage_first_admin(&w->s, &first->text) == OK);
    CHECK(stage_judge(&w->s, &first->text, &first->seen) == OK);
    first->id = first->seen.token_id;
    first->is_there = true;
    first->scopes = role_scopes(ROLE_ADMIN);
    for (int i = 1; i < NAMES; i++) {
        snprintf(w->users[i].name, NAME_BYTES, "Us%dEr.x@Y", i);
        w->users[i].owner = NO_OWNER;
    }
    w->users[0] =
        (struct truth_user){"admin", true, false, ROLE_ADMIN, "", NO_OWNER};
    for (int i = 0; i < STEPS; i++) {
        step(w);
        w->s.now_ms += (int64_t)below(w, 10) - 2; /* also backwards */
        if (below(w, 10) == 0)
            stage_restart(&w->s);
        if (below(w, 5) == 0)
            compare(w);
    }
    stage_restart(&w->s);
    compare(w);
    stage_close(&w->s);
    free(w->tokens);
    free(w);
}

static void a_hundred_and_one(void)
{
    live(101);
}

TEST(random_changes_at_once_agree_with_a_slow_truth)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        live(seed);
    a_hundred_and_one();
}

TEST(that_test_sees_a_revocation_that_was_skipped)
{
    stage_control("access.keep_revoked", a_hundred_and_one);
}

TEST(that_test_sees_a_revocation_that_was_not_written_down)
{
    stage_control("access.forget_revoked", a_hundred_and_one);
}

TEST(that_test_sees_names_that_keep_their_case)
{
    stage_control("access.keep_case", a_hundred_and_one);
}

TEST(that_test_sees_agents_that_outlive_their_owner)
{
    stage_control("access.keep_owned", a_hundred_and_one);
}
