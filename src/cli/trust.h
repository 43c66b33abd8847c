#ifndef CLI_TRUST_H
#define CLI_TRUST_H

/* trust: why TLS with somebody came to nothing, told from libcurl's words, for
 * advice that helps: a file of authorities mends neither a wrong name nor a
 * date. Words are all that there is in common: what a request of fetch/ came to
 * has no number of libcurl's any more. Those are OpenSSL's, and old. */

/* A certificate that was not accepted. */
enum trust { TRUST_SIGNER, TRUST_NAME, TRUST_ENDED, TRUST_EARLY };
enum trust trust_of(const char *said);

/* A handshake that did not get as far. */
enum handshake {
    HANDSHAKE_OTHER,
    HANDSHAKE_PLAIN, /* an answer that is no TLS */
    HANDSHAKE_CUT,   /* no answer: the connection ended */
};
enum handshake handshake_of(const char *said);

#endif
