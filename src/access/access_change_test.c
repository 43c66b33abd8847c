/* Changes: names, limits, and two at once. */
#include "test/lib/access_stage.h"

/* Names. */

/* Also run with the folding of case left out. */
static void anna_in_every_case(void)
{
    static const char *const written[] = {"anna", "ANNA", "aNNa", "Anna"};
    struct stage s;
    struct access_token admin, t;
    struct access_user u;
    struct caller c;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "Anna", ROLE_USER) == OK);
    for (int i = 0; i < 4; i++) {
        CHECK(stage_user(&s, written[i], ROLE_ADMIN) == ERR_EXISTS);
        CHECK(access_user_find(s.a, str_of(written[i]), &u));
        CHECK(strcmp(u.name, "Anna") == 0 && u.role == ROLE_USER);
        CHECK(stage_token(&s, written[i], 0, 0, &t, NULL) == OK);
        CHECK(stage_judge(&s, &t, &c) == OK);
        CHECK_STR(caller_name(&c), "Anna");
    }
    stage_restart(&s);
    CHECK(stage_judge(&s, &t, &c) == OK);
    CHECK_STR(caller_name(&c), "Anna");
    CHECK(stage_remove(&s, "ANNA") == OK);
    CHECK(!stage_is_good(&s, &t));
    CHECK(!access_user_find(s.a, STR("anna"), &u));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++)
            CHECK(stage_user(&s, written[i], ROLE_USER) == ERR_EXISTS);
        stage_restart(&s);
    }
    CHECK(!stage_is_good(&s, &t));
    stage_close(&s);
}

TEST(a_name_is_one_user_whatever_its_case_and_never_given_again)
{
    anna_in_every_case();
}

TEST(that_test_sees_names_that_keep_their_case)
{
    stage_control("access.keep_case", anna_in_every_case);
}

TEST(names_are_letters_digits_and_a_few_signs)
{
    static const char *const bad[] = {"",     ".a",   "-a",  "@a",  "_a",
                                      "a b",  "a/b",  "a\n", "a:b", "ä",
                                      "a\\b", "a\"b", "a%",  "*"};
    struct stage s;
    struct access_token t;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(stage_user(&s, bad[i], ROLE_USER) == ERR_BAD_REQUEST);
        CHECK(strstr(s.why.text, "name must be"));
        CHECK(stage_token(&s, bad[i], 0, 0, &t, NULL) == ERR_NOT_FOUND);
        CHECK(!bad[i][0] || stage_org(&s, "admin", bad[i]) == ERR_BAD_REQUEST);
    }
    CHECK(stage_user(&s, "a", ROLE_USER) == OK);
    CHECK(stage_user(&s, "0.b_c@d-E", ROLE_AGENT) == OK);
    CHECK(stage_user(&s, "b", 0) == ERR_BAD_REQUEST);
    CHECK(stage_user(&s, "b", (enum role)9) == ERR_BAD_REQUEST);
    CHECK(stage_role(&s, "a", (enum role)9) == ERR_BAD_REQUEST);
    CHECK(stage_role(&s, "a", 0) == ERR_BAD_REQUEST); /* nothing to change */
    CHECK(stage_role(&s, "no-such", ROLE_USER) == ERR_NOT_FOUND);
    CHECK(stage_remove(&s, "no-such") == ERR_NOT_FOUND);
    CHECK_INT(access_stats(s.a).users, 3);
    stage_close(&s);
}

TEST(names_orgs_and_labels_may_be_of_their_full_length_and_no_longer)
{
    char name[PRINCIPAL_NAME_MAX + 2], label[ACCESS_LABEL_MAX + 1];
    struct stage s;
    struct access_token t;
    struct access_change c;
    struct caller caller;

    memset(name, 'N', sizeof(name));
    memset(label, 'l', sizeof(label));
    name[PRINCIPAL_NAME_MAX + 1] = '\0';
    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, name, ROLE_USER) == ERR_BAD_REQUEST);
    CHECK(stage_org(&s, "admin", name) == ERR_BAD_REQUEST);
    name[PRINCIPAL_NAME_MAX] = '\0';
    CHECK(stage_user(&s, name, ROLE_USER) == OK);
    CHECK(stage_org(&s, name, name) == OK);
    for (size_t n = ACCESS_LABEL_MAX; n <= ACCESS_LABEL_MAX + 1; n++) {
        access_change_init(&c);
        CHECK(stage_commit(&s, &c,
                           access_token_create(
                               s.a, &c, str_of(name), 0, (struct str){label, n},
                               0, STR("admin"), s.now_ms, &t, &s.why)) ==
              (n == ACCESS_LABEL_MAX ? OK : ERR_BAD_REQUEST));
        CHECK(!t.text[0] == (n > ACCESS_LABEL_MAX));
    }
    access_change_init(&c);
    CHECK(access_token_create(s.a, &c, STR("admin"), 0, STR("a\x1b[2J"), 0,
                              STR("admin"), s.now_ms, &t,
                              &s.why) == ERR_BAD_REQUEST);
    CHECK(access_token_create(s.a, &c, STR("admin"), 0, STR(""), s.now_ms,
                              STR("admin"), s.now_ms, &t,
                              &s.why) == ERR_BAD_REQUEST);
    CHECK(access_token_create(s.a, &c, STR("admin"), 0, STR(""), -1,
                              STR("admin"), s.now_ms, &t,
                              &s.why) == ERR_BAD_REQUEST);
    access_change_fini(&c);
    CHECK(stage_token(&s, name, 0, 0, &t, NULL) == OK);
    stage_restart(&s);
    CHECK(stage_judge(&s, &t, &caller) == OK);
    CHECK_STR(caller_name(&caller), name);
    CHECK(strcmp(caller.org, name) == 0);
    stage_close(&s);
}

/* Limits. */

TEST(users_are_taken_up_to_the_limit)
{
    struct stage s;
    struct access_token t;

    stage_prepare(&s);
    s.opts.max_users = 3;
    CHECK(stage_start(&s) == OK && stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "b", ROLE_USER) == OK);
    CHECK(stage_user(&s, "c", ROLE_USER) == OK);
    CHECK(stage_user(&s, "d", ROLE_USER) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "3 users"));
    CHECK(stage_remove(&s, "b") == OK);
    CHECK(stage_user(&s, "d", ROLE_USER) == OK);
    s.opts.max_users = 1; /* a lower limit locks no user out */
    stage_restart(&s);
    CHECK_INT(access_stats(s.a).users, 3);
    CHECK(stage_user(&s, "e", ROLE_USER) == ERR_LIMIT);
    stage_close(&s);
}

TEST(tokens_are_made_up_to_the_limit_of_all_and_of_each_user)
{
    struct stage s;
    struct access_token t;
    struct id id;

    stage_prepare(&s);
    s.opts.max_tokens = 4;
    s.opts.max_user_tokens = 2;
    CHECK(stage_start(&s) == OK && stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "b", ROLE_USER) == OK);
    CHECK(stage_user(&s, "c", ROLE_USER) == OK);
    CHECK(stage_token(&s, "b", 0, 0, &t, NULL) == OK);
    CHECK(stage_token(&s, "b", 0, 0, &t, &id) == OK);
    CHECK(stage_token(&s, "b", 0, 0, &t, NULL) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "this user has 2") && !t.text[0]);
    CHECK(stage_token(&s, "c", 0, 0, &t, NULL) == OK);
    CHECK(stage_token(&s, "c", 0, 0, &t, NULL) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "there are 4"));
    CHECK(stage_revoke(&s, &id) == OK);
    CHECK(stage_token(&s, "c", 0, 0, &t, NULL) == OK);
    CHECK_INT(access_stats(s.a).tokens, 4);
    stage_restart(&s);
    CHECK_INT(access_stats(s.a).tokens, 4);
    CHECK(stage_token(&s, "b", 0, 0, &t, NULL) == ERR_LIMIT);
    stage_close(&s);
}

TEST(more_than_a_page_of_users_and_tokens_comes_back)
{
    enum { MANY = 501 };
    static struct access_token t[MANY];
    struct stage s;
    char name[16];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t[0]) == OK);
    for (int i = 1; i < MANY; i++) {
        snprintf(name, sizeof(name), "u%d", i);
        CHECK(stage_user(&s, name, ROLE_USER) == OK);
        CHECK(stage_token(&s, name, 0, 0, &t[i], NULL) == OK);
    }
    stage_restart(&s);
    CHECK_INT(access_stats(s.a).users, MANY);
    CHECK_INT(access_stats(s.a).tokens, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(stage_is_good(&s, &t[i]));
    stage_close(&s);
}

/* Two at once. */

static enum err prepare_user(struct stage *s, struct access_change *c,
                             const char *name)
{
    access_change_init(c);
    return access_user_create(s->a, c, str_of(name),
                              &(struct access_wish){.role = ROLE_USER},
                              STR("x"), s->now_ms, &s->why);
}

TEST(a_name_is_taken_from_the_moment_somebody_asks_for_it)
{
    struct stage s;
    struct access_token t;
    struct access_user u;
    struct access_change one, two;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(prepare_user(&s, &one, "anna") == OK);
    CHECK(prepare_user(&s, &two, "ANNA") == ERR_BUSY);
    access_change_fini(&two);
    CHECK(!access_user_find(s.a, STR("anna"), &u)); /* not there yet */
    CHECK(stage_token(&s, "anna", 0, 0, &t, NULL) == ERR_NOT_FOUND);
    CHECK(stage_begin(&s, &two, "anna", 0) == ERR_NOT_FOUND);
    access_change_fini(&two);
    CHECK(access_settle(s.a, &one, &s.why) != OK); /* comes to nothing */
    access_change_fini(&one);
    CHECK(prepare_user(&s, &two, "ANNA") == OK);
    CHECK(stage_commit(&s, &two, OK) == OK);
    CHECK(access_user_find(s.a, STR("anna"), &u));
    CHECK(strcmp(u.name, "ANNA") == 0);
    stage_close(&s);
}

TEST(the_second_of_two_changes_of_a_user_is_asked_to_try_again)
{
    struct stage s;
    struct access_token t;
    struct access_change one, two;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    for (int i = 0; i < 4; i++) {
        CHECK(stage_begin(&s, &one, "anna", i & 1 ? ROLE_AGENT : 0) == OK);
        CHECK(stage_begin(&s, &two, "anna", i & 2 ? ROLE_AGENT : 0) ==
              ERR_BUSY);
        access_change_fini(&two);
        CHECK(access_settle(s.a, &one, &s.why) != OK);
        access_change_fini(&one);
    }
    CHECK(stage_begin(&s, &two, "anna", 0) == OK);
    CHECK(stage_commit(&s, &two, OK) == OK);
    stage_close(&s);
}

TEST(of_two_who_revoke_a_token_one_is_told_that_it_is_gone)
{
    struct stage s;
    struct access_token t;
    struct id id;
    struct access_change c[2];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_token(&s, "admin", 0, 0, &t, &id) == OK);
    for (int i = 0; i < 2; i++) {
        access_change_init(&c[i]);
        CHECK(access_token_revoke(s.a, &c[i], str_of(id.text), &stage_admin,
                                  s.now_ms, &s.why) == OK);
        stage_submit(&s, &c[i]);
    }
    CHECK(stage_is_good(&s, &t)); /* until it is committed */
    store_turn(s.store);
    CHECK(access_settle(s.a, &c[0], &s.why) == OK);
    CHECK(access_settle(s.a, &c[1], &s.why) == ERR_NOT_FOUND);
    CHECK_INT(s.n_revoked, 1);
    access_change_fini(&c[0]);
    access_change_fini(&c[1]);
    stage_close(&s);
}

/* A token is made and its user removed at once: `token_first` says which is
 * submitted first, `in_order` whether they are settled as submitted. */
static void make_and_remove(bool token_first, bool in_order)
{
    struct stage s;
    struct access_token admin, t;
    struct access_change token, removal, *c[2] = {&token, &removal};
    enum err made = OK, removed = OK;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    access_change_init(&token);
    CHECK(access_token_create(s.a, &token, STR("anna"), 0, STR(""), 0, STR("x"),
                              s.now_ms, &t, &s.why) == OK);
    CHECK(stage_begin(&s, &removal, "anna", 0) == OK);
    stage_submit(&s, c[!token_first]);
    stage_submit(&s, c[token_first]);
    store_turn(s.store);
    for (int i = 0; i < 2; i++) {
        bool is_token = (i == 0) == (token_first == in_order);

        *(is_token ? &made : &removed) =
            access_settle(s.a, is_token ? &token : &removal, &s.why);
    }
    CHECK(removed == OK);
    CHECK(made == (token_first && in_order ? OK : ERR_NOT_FOUND));
    CHECK_INT(s.n_revoked, made == OK);
    for (int round = 0; round < 2; round++) {
        CHECK(!stage_is_good(&s, &t));
        CHECK_INT(access_stats(s.a).tokens, 1);
        CHECK_INT(access_stats(s.a).users, 1);
        access_change_fini(&token);
        access_change_fini(&removal);
        access_change_init(&token);
        access_change_init(&removal);
        stage_restart(&s);
    }
    access_change_fini(&token);
    access_change_fini(&removal);
    stage_close(&s);
}

TEST(no_token_outlives_its_user_whichever_came_first)
{
    for (int i = 0; i < 4; i++)
        make_and_remove(i & 1, i & 2);
}

TEST(a_token_and_its_removed_user_may_still_be_on_their_way_at_the_end)
{
    struct stage s;
    struct access_token admin, t;
    struct access_change token;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    access_change_init(&token);
    CHECK(access_token_create(s.a, &token, STR("anna"), 0, STR(""), 0, STR("x"),
                              s.now_ms, &t, &s.why) == OK);
    CHECK(stage_remove(&s, "anna") == OK);
    token.is_open = false; /* its holder went down with the server */
    access_change_fini(&token);
    stage_close(&s); /* and nothing leaks */
}

/* Removal, ownership, retention, the feed. */

TEST(removing_a_user_revokes_every_token_of_theirs_and_no_other)
{
    struct stage s;
    struct access_token admin, other, t[3];
    struct caller c[3];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_user(&s, "anna2", ROLE_USER) == OK);
    CHECK(stage_token(&s, "anna2", 0, 0, &other, NULL) == OK);
    for (int i = 0; i < 3; i++) {
        CHECK(stage_token(&s, "anna", 0, 0, &t[i], NULL) == OK);
        CHECK(stage_judge(&s, &t[i], &c[i]) == OK);
    }
    CHECK(stage_remove(&s, "anna") == OK);
    CHECK_INT(s.n_revoked, 3);
    for (int i = 0; i < 3; i++) {
        int told = 0;

        for (size_t k = 0; k < s.n_revoked; k++)
            told += strcmp(s.revoked[k].text, c[i].token_id.text) == 0;
        CHECK_INT(told, 1);
        CHECK(!stage_is_good(&s, &t[i]));
        CHECK(!access_is_good(s.a, &c[i], s.now_ms));
        CHECK(stage_revoke(&s, &c[i].token_id) == ERR_NOT_FOUND);
    }
    CHECK(stage_is_good(&s, &other) && stage_is_good(&s, &admin));
    stage_restart(&s);
    for (int i = 0; i < 3; i++)
        CHECK(!stage_is_good(&s, &t[i]));
    CHECK(stage_is_good(&s, &other) && stage_is_good(&s, &admin));
    stage_close(&s);
}

TEST(somebody_else_s_token_is_answered_like_one_that_is_not_there)
{
    struct stage s;
    struct access_token admin, t;
    struct id id, none = {"tok_00000000000000000000000000"};
    struct caller anna = {.principal = "anna",
                          .role = ROLE_USER,
                          .scopes = role_scopes(ROLE_USER)},
                  ann = anna, small = stage_admin;
    struct why words;

    ann.principal[3] = '\0';
    small.scopes = SCOPE_ALL & ~SCOPE_ADMIN;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &t, &id) == OK);
    CHECK(stage_revoke_by(&s, &none, &small) == ERR_NOT_FOUND);
    words = s.why;
    CHECK(stage_revoke_by(&s, &id, &small) == ERR_NOT_FOUND);
    CHECK(strcmp(words.text, s.why.text) == 0);
    CHECK(stage_revoke_by(&s, &id, &ann) == ERR_NOT_FOUND);
    CHECK(stage_is_good(&s, &t) && s.n_revoked == 0);
    CHECK(stage_revoke_by(&s, &id, &anna) == OK);
    stage_close(&s);
}

TEST(a_token_revokes_itself_and_of_its_user_s_those_that_allow_no_more)
{
    struct stage s;
    struct access_token big, t;
    struct id both, read, spare;
    struct caller c, admin_reads = stage_admin;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &big) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_token(&s, "anna", SCOPE_READ, 0, &t, &read) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &big, &both) == OK);
    CHECK(stage_token(&s, "anna", SCOPE_READ, 0, &big, &spare) == OK);
    CHECK(stage_judge(&s, &t, &c) == OK);
    CHECK(stage_revoke_by(&s, &both, &c) == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "allows more") && s.n_revoked == 0);
    CHECK(stage_revoke_by(&s, &spare, &c) == OK);
    CHECK(stage_revoke_by(&s, &read, &c) == OK);
    CHECK(stage_revoke(&s, &both) == OK); /* an admin, anybody's */

    /* The role counts, not what it was made for: both allow the same. */
    CHECK(stage_user(&s, "bob", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "bob", 0, 0, &big, &both) == OK);
    CHECK(stage_token(&s, "bob", role_scopes(ROLE_USER), 0, &t, &read) == OK);
    CHECK(stage_judge(&s, &t, &c) == OK);
    CHECK(stage_revoke_by(&s, &both, &c) == ERR_NOT_ALLOWED);
    CHECK(stage_role(&s, "bob", ROLE_USER) == OK);
    CHECK(stage_judge(&s, &t, &c) == OK);
    CHECK(stage_revoke_by(&s, &both, &c) == OK);

    /* An admin's token without that scope is like anybody's. */
    admin_reads.scopes = SCOPE_READ;
    CHECK(stage_token(&s, "admin", SCOPE_ADMIN, 0, &t, &both) == OK);
    CHECK(stage_revoke_by(&s, &both, &admin_reads) == ERR_NOT_ALLOWED);
    admin_reads.token_id = both;
    CHECK(stage_revoke_by(&s, &both, &admin_reads) == OK);
    stage_close(&s);
}

/* Who may make agents may have them speak for their creator, and take that
 * back; what an agent itself comes with gives it no more than that. */
TEST(only_who_may_make_agents_gives_them_their_creator_s_voice)
{
    struct stage s;
    struct access_token big, t;
    struct id loud;
    struct caller anna, clerk;
    unsigned scopes = SCOPE_SEND | SCOPE_CREATOR;
    int64_t end = 0;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &big) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_make(&s, "clerk", ROLE_AGENT, NULL, "anna") == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &t, NULL) == OK);
    CHECK(stage_judge(&s, &t, &anna) == OK);
    CHECK(!(anna.scopes & SCOPE_CREATOR));
    CHECK(access_grant(&anna, STR("anna"), &scopes, &end, &s.why) == OK);
    CHECK_INT(scopes, SCOPE_SEND | SCOPE_CREATOR);
    CHECK(stage_token(&s, "anna", scopes, 0, &t, &loud) == OK);
    CHECK(stage_judge(&s, &t, &clerk) == OK && clerk.scopes == scopes);
    /* Nor with more than it has. */
    CHECK(access_grant(&clerk, STR("anna"), &scopes, &end, &s.why) == OK);
    scopes |= SCOPE_READ;
    CHECK(access_grant(&clerk, STR("anna"), &scopes, &end, &s.why) ==
          ERR_NOT_ALLOWED);
    CHECK(stage_revoke_by(&s, &loud, &anna) == OK);

    CHECK(stage_token(&s, "clerk", 0, 0, &t, NULL) == OK);
    CHECK(stage_judge(&s, &t, &clerk) == OK);
    scopes = SCOPE_SEND | SCOPE_CREATOR;
    CHECK(access_grant(&clerk, STR("clerk"), &scopes, &end, &s.why) ==
          ERR_NOT_ALLOWED);
    CHECK(stage_token(&s, "clerk", scopes, 0, &t, NULL) == OK); /* an admin's */
    CHECK(stage_judge(&s, &t, &clerk) == OK && clerk.scopes == scopes);
    stage_close(&s);
}

static size_t n_token_rows(struct stage *s)
{
    struct query q;
    size_t n;

    query_init(&q, &token_table, 100);
    CHECK(store_look(s->store, &q) == OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static void prune(struct stage *s, int64_t before_ms, size_t limit)
{
    struct tx tx;

    tx_init(&tx);
    access_prune(s->a, &tx, before_ms, limit);
    store_submit(s->store, &tx, stage_on_done, NULL);
    store_turn(s->store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

TEST(retention_takes_what_has_long_expired_or_been_revoked)
{
    struct stage s;
    struct access_token admin, t[3];
    struct id id;
    int64_t start;

    stage_open(&s);
    start = s.now_ms;
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_token(&s, "admin", 0, start + 10, &t[0], NULL) == OK);
    CHECK(stage_token(&s, "admin", 0, start + 20, &t[1], NULL) == OK);
    CHECK(stage_token(&s, "admin", 0, 0, &t[2], &id) == OK);
    s.now_ms = start + 15;
    CHECK(stage_revoke(&s, &id) == OK);
    CHECK_INT(n_token_rows(&s), 4);
    prune(&s, start + 10, 100);
    CHECK_INT(n_token_rows(&s), 4);
    prune(&s, start + 11, 100);
    CHECK_INT(n_token_rows(&s), 3);
    CHECK_INT(access_stats(s.a).tokens, 2);
    CHECK(stage_is_good(&s, &t[1])); /* has five milliseconds left */
    prune(&s, start + 21, 0);
    CHECK_INT(n_token_rows(&s), 3);
    prune(&s, start + 21, 1);
    CHECK_INT(n_token_rows(&s), 1);
    CHECK(stage_is_good(&s, &admin));
    stage_restart(&s);
    CHECK(stage_is_good(&s, &admin));
    CHECK_INT(access_stats(s.a).tokens, 1);
    stage_close(&s);
}

/* Write the rows directly: one by one would take too long. */
static void put_tokens(struct stage *s, int from, int n)
{
    struct tx tx;

    tx_init(&tx);
    for (int i = from; i < from + n; i++) {
        struct id id = id_make(&s->ids, "tok", s->now_ms);
        char hash[32] = {0};
        struct tx_op *op = tx_insert(&tx, &token_table);

        memcpy(hash, &i, sizeof(i));
        tx_set(op, TOKEN_ID, value_text(str_of(id.text)));
        tx_set(op, TOKEN_HASH, value_blob((struct str){hash, sizeof(hash)}));
        tx_set(op, TOKEN_USER, value_text(STR("admin")));
        tx_set(op, TOKEN_SCOPES, value_int(SCOPE_READ));
        tx_set(op, TOKEN_CREATED_MS, value_int(s->now_ms));
        tx_set(op, TOKEN_EXPIRES_MS, value_int(s->now_ms + 1000 + i % 7));
    }
    store_submit(s->store, &tx, stage_on_done, NULL);
    store_turn(s->store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

/* Walked one by one, this would not end within the limit of a test. */
TEST(retention_does_not_look_at_every_token)
{
    enum { BATCHES = 50, BATCH = 1000, MANY_TIMES = 300 * 1000 };
    struct stage s;
    struct access_token admin;
    struct tx tx;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    for (int i = 0; i < BATCHES; i++) {
        put_tokens(&s, i * BATCH, BATCH);
        s.now_ms += 10000;
    }
    stage_restart(&s);
    CHECK_INT(access_stats(s.a).tokens, BATCHES * BATCH + 1);
    for (int i = 0; i < MANY_TIMES; i++) {
        tx_init(&tx);
        access_prune(s.a, &tx, 1, 500);
        tx_fini(&tx);
    }
    CHECK_INT(access_stats(s.a).tokens, BATCHES * BATCH + 1);
    prune(&s, 1700000001000 + 7, 999); /* all of the first but one */
    CHECK_INT(access_stats(s.a).tokens, BATCHES * BATCH + 1 - 999);
    prune(&s, 1700000001000 + 7, 999);
    CHECK_INT(access_stats(s.a).tokens, BATCHES * BATCH + 1 - 1000);
    CHECK(stage_is_good(&s, &admin));
    stage_close(&s);
}

/* Take the next feed entry off *r and compare. */
static void expect_entry(const struct row **r, const char *type,
                         const char *data)
{
    struct feed_entry e;

    CHECK(*r);
    feed_from_row(&e, *r);
    CHECK_STR(e.type, type);
    CHECK_STR(e.data, data);
    CHECK(e.requester.n == 0 && e.root_user.n == 0); /* for admins only */
    CHECK_INT(e.at_ms, 1700000000000);
    *r = (*r)->next;
}

TEST(every_change_is_told_in_the_feed_and_to_admins_only)
{
    struct stage s;
    struct access_token t;
    struct id id, first;
    struct caller c;
    struct query q;
    const struct row *r;
    char data[128];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK && stage_judge(&s, &t, &c) == OK);
    first = c.token_id;
    CHECK(stage_user(&s, "Anna", ROLE_USER) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == ERR_EXISTS);
    CHECK(stage_role(&s, "anna", ROLE_AGENT) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &t, &id) == OK);
    CHECK(stage_revoke(&s, &id) == OK);
    CHECK(stage_remove(&s, "ANNA") == OK);

    query_init(&q, &feed_table, 100);
    query_order(&q, FEED_SEQ, false);
    CHECK(store_look(s.store, &q) == OK && q.n_rows == 7);
    r = q.rows;
    expect_entry(&r, "user.created", "{\"user\":\"admin\",\"by\":null}");
    snprintf(data, sizeof(data),
             "{\"user\":\"admin\",\"by\":null,\"token_id\":\"%s\"}",
             first.text);
    expect_entry(&r, "token.created", data);
    expect_entry(&r, "user.created", "{\"user\":\"Anna\",\"by\":\"admin\"}");
    expect_entry(&r, "user.changed", "{\"user\":\"Anna\",\"by\":\"admin\"}");
    snprintf(data, sizeof(data),
             "{\"user\":\"Anna\",\"by\":\"admin\",\"token_id\":\"%s\"}",
             id.text);
    expect_entry(&r, "token.created", data);
    expect_entry(&r, "token.revoked", data);
    expect_entry(&r, "user.removed", "{\"user\":\"Anna\",\"by\":\"admin\"}");
    query_fini(&q);
    stage_close(&s);
}

/* Granting. */

TEST(nobody_but_an_admin_grants_more_or_longer_than_they_have)
{
    struct caller admin = {.role = ROLE_ADMIN,
                           .scopes = SCOPE_ALL,
                           .principal = "root",
                           .expires_ms = 5},
                  anna = {.role = ROLE_USER,
                          .scopes = SCOPE_SEND | SCOPE_READ,
                          .principal = "Anna",
                          .expires_ms = 1000};
    unsigned scopes = SCOPE_AGENTS;
    int64_t expires = 0;

    CHECK(access_grant(&admin, STR("anybody"), &scopes, &expires, NULL) == OK);
    CHECK(scopes == SCOPE_AGENTS && expires == 0);

    CHECK(access_grant(&anna, STR("root"), &scopes, &expires, NULL) ==
          ERR_NOT_ALLOWED);
    CHECK(access_grant(&anna, STR("ANNA"), &scopes, &expires, NULL) ==
          ERR_NOT_ALLOWED); /* a scope that she lacks */
    scopes = 0;
    CHECK(access_grant(&anna, STR("anna"), &scopes, &expires, NULL) == OK);
    CHECK(scopes == (SCOPE_SEND | SCOPE_READ) && expires == 1000);
    scopes = SCOPE_READ;
    expires = 1001;
    CHECK(access_grant(&anna, STR("Anna"), &scopes, &expires, NULL) == OK);
    CHECK(scopes == SCOPE_READ && expires == 1000);
    expires = 999;
    CHECK(access_grant(&anna, STR("Anna"), &scopes, &expires, NULL) == OK);
    CHECK(expires == 999);

    anna.scopes = 0; /* what it was made for, the role has lost */
    scopes = 0;
    CHECK(access_grant(&anna, STR("Anna"), &scopes, &expires, NULL) ==
          ERR_NOT_ALLOWED);
    admin.scopes = SCOPE_SEND; /* an admin's token without that scope */
    scopes = 0;
    CHECK(access_grant(&admin, STR("anna"), &scopes, &expires, NULL) ==
          ERR_NOT_ALLOWED);
    CHECK(access_grant(&admin, STR("root"), &scopes, &expires, NULL) == OK);
    CHECK(scopes == SCOPE_SEND && expires == 5);
}

/* What the store may hold that we did not write. */

static void put_user(struct stage *s, const char *name, const char *shown,
                     int64_t role)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &user_table);
    tx_set(op, USER_NAME, value_text(str_of(name)));
    tx_set(op, USER_SHOWN, value_text(str_of(shown)));
    tx_set(op, USER_ROLE, value_int(role));
    tx_set(op, USER_CREATED_MS, value_int(1));
    store_submit(s->store, &tx, stage_on_done, NULL);
    store_turn(s->store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

TEST(a_row_that_cannot_be_read_stops_the_start)
{
    static const struct {
        const char *name, *shown;
        int64_t role;
    } bad[] = {{"a", "a", 0}, {"a", "a", 4}, {"a", "b", 2}, {"a b", "a b", 2}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct stage s;

        stage_open(&s);
        put_user(&s, bad[i].name, bad[i].shown, bad[i].role);
        stage_end(&s);
        CHECK(stage_start(&s) == ERR_BAD_CONFIG);
        CHECK(strstr(s.why.text, "cannot read"));
        stage_close(&s);
    }
}
