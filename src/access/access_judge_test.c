/* Judging: which tokens are good, for what, and until when. */
#include <glob.h>
#include <openssl/evp.h>

#include "test/lib/access_stage.h"

static enum err judge_text(struct stage *s, struct str header,
                           struct caller *out)
{
    memset(out, 0x55, sizeof(*out));
    memset(&s->why, 0, sizeof(s->why));
    return access_judge(s->a, header, s->now_ms, out, &s->why);
}

static bool is_nobody(const struct caller *c)
{
    return !c->token_id.text[0] && !c->principal[0] && !c->role && !c->scopes;
}

TEST(the_first_start_makes_an_admin_who_may_do_all)
{
    struct stage s;
    struct access_token t, second;
    struct caller c;

    stage_open(&s);
    CHECK(access_is_new(s.a));
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(strlen(t.text) == ACCESS_TOKEN_CHARS);
    CHECK(!access_is_new(s.a));
    CHECK(stage_judge(&s, &t, &c) == OK);
    CHECK_STR(caller_name(&c), "admin");
    CHECK(caller_is_admin(&c) && c.scopes == role_scopes(ROLE_ADMIN) &&
          c.expires_ms == 0);
    CHECK(id_is_valid(str_of(c.token_id.text), "tok"));
    CHECK(access_is_good(s.a, &c, s.now_ms));

    CHECK(stage_first_admin(&s, &second) == ERR_EXISTS && !second.text[0]);
    stage_restart(&s);
    CHECK(!access_is_new(s.a) && stage_is_good(&s, &t));
    CHECK(stage_first_admin(&s, &second) == ERR_EXISTS);
    stage_close(&s);
}

TEST(a_token_is_nothing_before_it_is_committed)
{
    struct stage s;
    struct access_token t;
    struct access_change c;

    stage_open(&s);
    access_change_init(&c);
    CHECK(access_first_admin(s.a, &c, s.now_ms, &t, &s.why) == OK);
    CHECK(!stage_is_good(&s, &t) && access_is_new(s.a));
    CHECK(access_settle(s.a, &c, &s.why) != OK); /* never submitted */
    access_change_fini(&c);
    CHECK(!stage_is_good(&s, &t) && access_is_new(s.a));
    CHECK_INT(access_stats(s.a).users, 0);
    CHECK(stage_first_admin(&s, &t) == OK && stage_is_good(&s, &t));
    stage_close(&s);
}

TEST(the_header_is_read_strictly)
{
    static const struct {
        const char *before, *behind;
        bool is_good;
    } cases[] = {
        {"Bearer ", "", true},      {"bearer ", "", true},
        {"BEARER ", "", true},      {"", "", false},
        {"Bearer", "", false},      {"Bearer  ", "", false},
        {"Bearer\t", "", false},    {" Bearer ", "", false},
        {"Basic ", "", false},      {"Bearer: ", "", false},
        {"Bearer ", " ", false},    {"Bearer ", "=", false},
        {"Bearer ", "A", false},    {"Bearer \"", "\"", false},
        {"Bearer ", ",x", false},   {"Token ", "", false},
        {"Bearer sbx_", "", false},
    };
    struct stage s;
    struct access_token t;
    struct caller c;
    char header[128];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum err e;

        snprintf(header, sizeof(header), "%s%s%s", cases[i].before, t.text,
                 cases[i].behind);
        e = judge_text(&s, str_of(header), &c);
        if (e != (cases[i].is_good ? OK : ERR_UNAUTHENTICATED))
            T_FAIL("\"%s\" before and \"%s\" behind: %d", cases[i].before,
                   cases[i].behind, e);
        CHECK(is_nobody(&c) == !cases[i].is_good);
        CHECK(cases[i].is_good || s.why.text[0]);
        CHECK(!strstr(s.why.text, t.text + 4)); /* no secret in the words */
    }
    CHECK(judge_text(&s, (struct str){NULL, 0}, &c) == ERR_UNAUTHENTICATED);
    CHECK(strstr(s.why.text, "Authorization: Bearer"));
    stage_close(&s);
}

TEST(one_character_more_less_or_other_is_another_token)
{
    static const char others[] = "Aa0-_+/=. \n\xff";
    struct stage s;
    struct access_token t;
    struct caller c;
    char header[7 + ACCESS_TOKEN_CHARS + 1] = "Bearer ";

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    memcpy(header + 7, t.text, ACCESS_TOKEN_CHARS);
    for (size_t n = 0; n < 7 + ACCESS_TOKEN_CHARS; n++)
        CHECK(judge_text(&s, (struct str){header, n}, &c) ==
              ERR_UNAUTHENTICATED);
    CHECK(judge_text(&s, (struct str){header, sizeof(header)}, &c) ==
          ERR_UNAUTHENTICATED); /* a NUL behind it */
    for (size_t i = 7; i < 7 + ACCESS_TOKEN_CHARS; i++) {
        char was = header[i];

        for (size_t k = 0; k < sizeof(others); k++) { /* the NUL too */
            header[i] = others[k];
            CHECK((judge_text(&s, (struct str){header, 7 + ACCESS_TOKEN_CHARS},
                              &c) == OK) == (others[k] == was));
        }
        header[i] = was ^ 0x20; /* the other case */
        CHECK(judge_text(&s, (struct str){header, 7 + ACCESS_TOKEN_CHARS},
                         &c) == ERR_UNAUTHENTICATED);
        header[i] = was;
    }
    CHECK(judge_text(&s, (struct str){header, 7 + ACCESS_TOKEN_CHARS}, &c) ==
          OK);
    stage_close(&s);
}

/* The last character carries four bits: of the 64 that may stand there, 48
 * are other ways to write the same 32 bytes or none. */
TEST(a_token_can_be_written_in_one_way_only)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct stage s;
    struct access_token t;
    char last;
    int well_formed = 0;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    last = t.text[ACCESS_TOKEN_CHARS - 1];
    for (size_t i = 0; i < 64; i++) {
        t.text[ACCESS_TOKEN_CHARS - 1] = alphabet[i];
        s.why.text[0] = '\0';
        CHECK(stage_is_good(&s, &t) == (alphabet[i] == last));
        well_formed += strstr(s.why.text, "not a token") == NULL;
    }
    CHECK_INT(well_formed, 16);
    stage_close(&s);
}

TEST(tokens_are_all_different_and_use_every_character)
{
    enum { MANY = 300 };
    static struct access_token t[MANY];
    bool seen[256] = {false};
    int n_seen = 0;
    struct stage s;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t[0]) == OK);
    for (int i = 1; i < MANY; i++) {
        CHECK(stage_token(&s, "admin", 0, 0, &t[i], NULL) == OK);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(t[i].text, t[k].text) != 0);
        for (int k = 4; k < ACCESS_TOKEN_CHARS; k++)
            seen[(unsigned char)t[i].text[k]] = true;
    }
    for (int i = 0; i < 256; i++)
        n_seen += seen[i];
    CHECK_INT(n_seen, 64);
    stage_close(&s);
}

TEST(unknown_expired_and_revoked_are_told_alike)
{
    struct stage s;
    struct access_token admin, old, revoked,
        unknown = {"sbx_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    struct id id;
    struct why first;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_token(&s, "admin", 0, s.now_ms + 1, &old, NULL) == OK);
    CHECK(stage_token(&s, "admin", 0, 0, &revoked, &id) == OK);
    CHECK(stage_revoke(&s, &id) == OK);
    s.now_ms++;
    CHECK(stage_judge(&s, &unknown, NULL) == ERR_UNAUTHENTICATED);
    first = s.why;
    CHECK(stage_judge(&s, &old, NULL) == ERR_UNAUTHENTICATED);
    CHECK(strcmp(first.text, s.why.text) == 0);
    CHECK(stage_judge(&s, &revoked, NULL) == ERR_UNAUTHENTICATED);
    CHECK(strcmp(first.text, s.why.text) == 0);
    CHECK_INT(access_stats(s.a).refused_total, 3);
    stage_close(&s);
}

TEST(a_token_expires_on_the_millisecond_by_the_clock_of_the_wall)
{
    struct stage s;
    struct access_token admin, t;
    struct caller c;
    int64_t end;

    stage_open(&s);
    end = s.now_ms + 1000;
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_token(&s, "admin", SCOPE_READ, end, &t, NULL) == OK);
    s.now_ms = end - 1;
    CHECK(stage_judge(&s, &t, &c) == OK && c.expires_ms == end);
    CHECK(access_is_good(s.a, &c, end - 1));
    CHECK(!access_is_good(s.a, &c, end));
    s.now_ms = end;
    CHECK(!stage_is_good(&s, &t));
    stage_restart(&s);
    CHECK(!stage_is_good(&s, &t));
    s.now_ms = end - 1; /* the clock was put right */
    CHECK(stage_is_good(&s, &t) && access_is_good(s.a, &c, s.now_ms));
    stage_close(&s);
}

/* Also run with the revocation skipped. */
static void revoke_one_of_three(void)
{
    struct stage s;
    struct access_token admin, t[2];
    struct id id[2];
    struct caller c[2];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    for (int i = 0; i < 2; i++) {
        CHECK(stage_token(&s, "admin", 0, 0, &t[i], &id[i]) == OK);
        CHECK(stage_judge(&s, &t[i], &c[i]) == OK);
    }
    CHECK(stage_revoke(&s, &id[0]) == OK);
    CHECK(!stage_is_good(&s, &t[0]));
    CHECK(!access_is_good(s.a, &c[0], s.now_ms));
    CHECK_INT(s.n_revoked, 1);
    CHECK(strcmp(s.revoked[0].text, id[0].text) == 0);
    CHECK(stage_is_good(&s, &t[1]) && access_is_good(s.a, &c[1], s.now_ms));
    CHECK(stage_is_good(&s, &admin));
    CHECK(stage_revoke(&s, &id[0]) == ERR_NOT_FOUND);
    CHECK_INT(s.n_revoked, 1);
    stage_restart(&s);
    CHECK(!stage_is_good(&s, &t[0]) && stage_is_good(&s, &t[1]));
    stage_close(&s);
}

TEST(a_revoked_token_is_refused_at_once_and_for_good)
{
    revoke_one_of_three();
}

TEST(that_test_sees_a_revocation_that_was_skipped)
{
    stage_control("access.keep_revoked", revoke_one_of_three);
}

TEST(that_test_sees_a_revocation_that_was_not_written_down)
{
    stage_control("access.forget_revoked", revoke_one_of_three);
}

TEST(nobody_s_caller_is_not_good)
{
    struct stage s;
    struct access_token t;
    struct caller c = {.scopes = 0};

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(!access_is_good(s.a, &c, s.now_ms));
    stage_close(&s);
}

TEST(a_new_role_cuts_what_tokens_allow_at_once_and_widens_none)
{
    struct stage s;
    struct access_token admin, big, small;
    struct caller before, c;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &big, NULL) == OK);
    CHECK(stage_judge(&s, &big, &before) == OK);
    CHECK(before.scopes == role_scopes(ROLE_ADMIN) &&
          access_is_good(s.a, &before, 0));

    CHECK(stage_role(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_judge(&s, &big, &c) == OK);
    CHECK(c.scopes == role_scopes(ROLE_USER) && !caller_is_admin(&c));
    CHECK(!access_is_good(s.a, &before, s.now_ms)); /* what it had open ends */
    CHECK(access_is_good(s.a, &c, s.now_ms));
    CHECK(stage_token(&s, "anna", 0, 0, &small, NULL) == OK);
    CHECK(stage_token(&s, "anna", SCOPE_ADMIN, 0, &admin, NULL) ==
          ERR_NOT_ALLOWED);

    CHECK(stage_role(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_judge(&s, &big, &c) == OK &&
          c.scopes == role_scopes(ROLE_ADMIN));
    CHECK(stage_judge(&s, &small, &c) == OK && c.role == ROLE_ADMIN);
    CHECK(c.scopes == role_scopes(ROLE_USER) && !caller_is_admin(&c));
    stage_restart(&s);
    CHECK(stage_judge(&s, &small, &c) == OK && !caller_is_admin(&c));
    CHECK(stage_judge(&s, &big, &c) == OK && caller_is_admin(&c));
    stage_close(&s);
}

TEST(a_token_may_allow_less_than_its_role)
{
    struct stage s;
    struct access_token admin, t;
    struct caller c;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    for (unsigned i = 0; i < N_SCOPES; i++) {
        CHECK(stage_token(&s, "admin", 1U << i, 0, &t, NULL) == OK);
        CHECK(stage_judge(&s, &t, &c) == OK && c.scopes == 1U << i);
        CHECK(caller_is_admin(&c) == (1U << i == SCOPE_ADMIN));
    }
    CHECK(stage_token(&s, "admin", 1U << N_SCOPES, 0, &t, NULL) ==
          ERR_BAD_REQUEST);
    CHECK(!t.text[0]);
    stage_close(&s);
}

TEST(an_org_comes_and_goes_and_ends_what_was_open_in_the_old_one)
{
    struct stage s;
    struct access_token admin, t;
    struct caller before, c;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &t, NULL) == OK);
    CHECK(stage_judge(&s, &t, &before) == OK && !before.org[0]);
    CHECK(stage_org(&s, "anna", "acme") == OK);
    CHECK(stage_judge(&s, &t, &c) == OK && strcmp(c.org, "acme") == 0);
    CHECK(!access_is_good(s.a, &before, s.now_ms));
    CHECK(access_is_good(s.a, &c, s.now_ms));
    CHECK(stage_role(&s, "anna", ROLE_AGENT) == OK); /* and the org stays */
    stage_restart(&s);
    CHECK(stage_judge(&s, &t, &c) == OK && strcmp(c.org, "acme") == 0);
    CHECK(c.role == ROLE_AGENT);
    CHECK(stage_org(&s, "anna", "") == OK);
    stage_restart(&s);
    CHECK(stage_judge(&s, &t, &c) == OK && !c.org[0] && c.role == ROLE_AGENT);
    stage_close(&s);
}

/* Whether any file of the folder has these bytes. */
static bool folder_has(const struct stage *s, struct str bytes)
{
    char pattern[128];
    glob_t found;
    bool has = false;

    snprintf(pattern, sizeof(pattern), "%s/*", s->folder);
    CHECK(glob(pattern, 0, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        static char text[8 << 20];
        FILE *f = fopen(found.gl_pathv[i], "rb");
        size_t n;

        CHECK(f);
        n = fread(text, 1, sizeof(text), f);
        CHECK(n < sizeof(text));
        has = has || memmem(text, n, bytes.p, bytes.n);
        fclose(f);
    }
    globfree(&found);
    return has;
}

TEST(the_secret_is_in_no_file)
{
    struct stage s;
    struct access_token t;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "findable", ROLE_USER) == OK);
    stage_end(&s);
    CHECK(folder_has(&s, STR("findable"))); /* so it would be seen */
    for (size_t at = 0; at + 12 <= ACCESS_TOKEN_CHARS; at++)
        CHECK(!folder_has(&s, (struct str){t.text + at, 12}));
    stage_close(&s);
}

TEST(a_wiped_token_is_empty)
{
    static const struct access_token none;
    struct stage s;
    struct access_token t;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    access_token_wipe(&t);
    CHECK(memcmp(&t, &none, sizeof(t)) == 0);
    stage_close(&s);
}

TEST(the_hash_in_the_store_is_the_sha256_of_the_text)
{
    struct stage s;
    struct access_token t;
    struct query q;
    char hash[32];

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    query_init(&q, &token_table, 2);
    CHECK(store_look(s.store, &q) == OK && q.n_rows == 1);
    CHECK(EVP_Digest(t.text, ACCESS_TOKEN_CHARS, (unsigned char *)hash, NULL,
                     EVP_sha256(), NULL) == 1);
    CHECK(
        str_eq(row_str(q.rows, TOKEN_HASH), (struct str){hash, sizeof(hash)}));
    query_fini(&q);
    stage_close(&s);
}
