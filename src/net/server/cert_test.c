/* Certificates: the one that a name gets, rejections and their messages, and
 * that a bad one never replaces a good one. */
#include "test/lib/tls_stage.h"

/* The first name in the certificate that a client with this name gets. */
static void name_for(struct stage *s, const char *sni, char out[64])
{
    struct guest g = guest_new(s, 0);
    GENERAL_NAMES *names;
    X509 *x;

    if (sni)
        SSL_set_tlsext_host_name(g.ssl, sni);
    CHECK(guest_meet(s, &g));
    x = SSL_get0_peer_certificate(g.ssl);
    names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    snprintf(out, 64, "%s",
             (const char *)ASN1_STRING_get0_data(
                 sk_GENERAL_NAME_value(names, 0)->d.dNSName));
    GENERAL_NAMES_free(names);
    guest_free(&g);
}

TEST(a_name_gets_the_certificate_that_is_made_out_to_it)
{
    static const struct {
        const char *asked, *got;
    } all[] = {
        {"a.example", "a.example"},
        {"A.EXAMPLE", "a.example"},
        {"b.example", "b.example"},
        {"also-b.example", "b.example"},
        {"x.w.example", "*.w.example"},
        {"w.example", "a.example"},
        {"x.y.w.example", "a.example"},
        {"nobody.example", "a.example"},
        {NULL, "a.example"},
    };
    struct tls_folder f;
    struct stage s;
    struct why why;
    char got[64];

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 0, &s, (struct cert_wish){.san = "DNS:a.example"});
    folder_put(&f, 1, &s,
               (struct cert_wish){.san = "DNS:b.example,DNS:also-b.example"});
    folder_put(&f, 2, &s, (struct cert_wish){.san = "DNS:*.w.example"});
    CHECK(net_set_certs(s.net, f.files, 3, &why) == OK);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        name_for(&s, all[i].asked, got);
        CHECK(strcmp(got, all[i].got) == 0);
    }
    tls_stage_fini(&s, &f);
}

TEST(a_new_certificate_is_for_those_who_come_after)
{
    struct tls_folder f;
    struct stage s;
    struct guest g, half;
    struct heard h = {.n = 0};
    struct why why;
    char got[64];

    tls_stage_init(&s, &f, test_opts());
    g = guest_in(&s);
    half = guest_new(&s, 0);
    CHECK(!guest_shake(&half));
    turn(&s, 3);
    folder_put(&f, 0, &s, (struct cert_wish){.san = "DNS:new.example"});
    CHECK(net_set_certs(s.net, f.files, 1, &why) == OK);
    name_for(&s, "localhost", got);
    CHECK(strcmp(got, "new.example") == 0);
    CHECK(guest_meet(&s, &half)); /* begun before, and finished after */
    guest_say(&g, GET_CLOSE("/old"));
    GUEST_UNTIL(&s, &g, &h, h.is_eof || h.is_reset);
    CHECK(has(&h, "\r\n\r\n/old") && h.is_eof);
    guest_free(&g);
    guest_free(&half);
    tls_stage_fini(&s, &f);
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

/* The files are rejected with this message, and the server goes on. */
static void check_refused(struct stage *s, struct tls_folder *f, enum err e,
                          const char *words)
{
    struct why why = {""};
    int64_t ends_s;

    CHECK(net_set_certs(s->net, f->files, (size_t)f->n, &why) == e);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" has no \"%s\"", why.text, words);
    CHECK(strstr(why.text, f->path));
    why.text[0] = '\0';
    CHECK(net_check_cert(&f->files[f->n - 1], s->time.wall_ms, &ends_s, &why) ==
          e);
    CHECK(strstr(why.text, words));
    check_tls_alive(s);
}

TEST(what_is_wrong_with_a_certificate_is_said_and_changes_nothing)
{
    static const struct {
        struct cert_wish wish;
        const char *words;
    } all[] = {
        {{.has_other_key = true}, "is not that of the certificate in"},
        {{.passphrase = "secret"}, "has a passphrase"},
        {{.begins_s = -20 * DAY_S, .ends_s = -1}, "has expired, "},
        {{.begins_s = -20 * DAY_S, .ends_s = -1}, "have it renewed"},
        {{.begins_s = 60}, "is not valid before 1994-"},
    };
    struct tls_folder f;
    struct stage s;

    tls_stage_init(&s, &f, test_opts());
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        folder_put(&f, 1, &s, all[i].wish);
        check_refused(&s, &f, ERR_BAD_CONFIG, all[i].words);
    }
    tls_stage_fini(&s, &f);
}

TEST(what_is_wrong_with_the_files_is_said_and_changes_nothing)
{
    struct tls_folder f;
    struct stage s;
    char big[128];

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    write_file(f.cert[1], "");
    check_refused(&s, &f, ERR_BAD_CONFIG, "has no certificate");
    write_file(f.cert[1], "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n"
                          "-----END CERTIFICATE-----\n");
    check_refused(&s, &f, ERR_BAD_CONFIG, "has no certificate");
    CHECK(unlink(f.cert[1]) == 0);
    check_refused(&s, &f, ERR_IO, "No such file");
    CHECK(mkfifo(f.cert[1], 0600) == 0); /* must not wait for a writer */
    check_refused(&s, &f, ERR_IO, "cannot read");
    CHECK(unlink(f.cert[1]) == 0 && mkdir(f.cert[1], 0700) == 0);
    check_refused(&s, &f, ERR_IO, "Is a directory");
    CHECK(rmdir(f.cert[1]) == 0);
    snprintf(big, sizeof(big), "truncate -s 2M %s", f.cert[1]);
    CHECK(system(big) == 0);
    check_refused(&s, &f, ERR_IO, "File too large");
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    write_file(f.key[1], "nothing");
    check_refused(&s, &f, ERR_BAD_CONFIG, "has no private key");
    CHECK(unlink(f.key[1]) == 0);
    check_refused(&s, &f, ERR_IO, "No such file");
    tls_stage_fini(&s, &f);
}

TEST(a_key_that_is_too_short_is_refused)
{
    struct tls_folder f;
    struct stage s;
    EVP_PKEY *key = EVP_RSA_gen(1024);
    X509 *x;
    FILE *out;

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    x = x509_new(key, &(struct cert_wish){.san = "DNS:a", .ends_s = DAY_S},
                 s.time.wall_ms / 1000);
    CHECK((out = fopen(f.cert[1], "w")) && PEM_write_X509(out, x) == 1);
    fclose(out);
    check_refused(&s, &f, ERR_BAD_CONFIG, "RSA, 2048 bits");
    X509_free(x);
    EVP_PKEY_free(key);
    tls_stage_fini(&s, &f);
}

TEST(a_chain_is_sent_whole_and_has_a_limit)
{
    struct tls_folder f;
    struct stage s;
    struct guest g;
    struct why why;
    char command[512];

    tls_stage_init(&s, &f, test_opts());
    folder_put(&f, 1, &s, (struct cert_wish){.san = NULL});
    snprintf(command, sizeof(command), "cat %s >> %s", f.cert[1], f.cert[0]);
    CHECK(system(command) == 0);
    CHECK(net_set_certs(s.net, f.files, 1, &why) == OK);
    g = guest_in(&s);
    CHECK(sk_X509_num(SSL_get_peer_cert_chain(g.ssl)) == 2);
    guest_free(&g);
    for (int i = 0; i < 15; i++)
        CHECK(system(command) == 0);
    CHECK(net_set_certs(s.net, f.files, 1, &why) == OK);
    CHECK(system(command) == 0);
    CHECK(net_set_certs(s.net, f.files, 1, &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "more than 16"));
    tls_stage_fini(&s, &f);
}

TEST(the_first_to_end_is_known_and_warned_of)
{
    struct tls_folder f;
    struct stage s;
    struct why why;
    char path[96], text[4096] = "";
    int64_t now_s;
    FILE *log;

    tls_stage_init(&s, &f, test_opts());
    now_s = s.time.wall_ms / 1000;
    snprintf(path, sizeof(path), "%s/log", f.path);
    log = fopen(path, "w+");
    s.log.fd = dup2(fileno(log), s.log.fd);
    CHECK(net_stats(s.net).tls_cert_ends_s == now_s + 90 * DAY_S);
    folder_put(&f, 0, &s, (struct cert_wish){.ends_s = 14 * DAY_S});
    folder_put(&f, 1, &s, (struct cert_wish){.ends_s = 14 * DAY_S - 1});
    CHECK(net_set_certs(s.net, f.files, 2, &why) == OK);
    CHECK(net_stats(s.net).tls_cert_ends_s == now_s + 14 * DAY_S - 1);
    rewind(log);
    CHECK(fread(text, 1, sizeof(text) - 1, log) > 0);
    CHECK(strstr(text, "net.certificate_ends_soon") &&
          strstr(text, "cert1.pem"));
    CHECK(strstr(text, "\"days\":13") && !strstr(text, "cert0.pem"));
    fclose(log);
    tls_stage_fini(&s, &f);
}

TEST(every_step_of_reading_them_may_fail)
{
    struct tls_folder f;
    struct stage s;
    struct why why;
    long nth = 0;

    tls_stage_init(&s, &f, test_opts());
    do {
        enum err e;

        fault_arm(++nth);
        e = net_set_certs(s.net, f.files, 1, &why);
        CHECK(fault_fired() ? e != OK : e == OK);
        if (fault_fired())
            check_tls_alive(&s);
    } while (fault_fired());
    CHECK_INT(nth, 4);
    tls_stage_fini(&s, &f);
}
