#ifndef CLI_TRUST_H
#define CLI_TRUST_H

/* trust: find the cause of a TLS error in libcurl's message, for good advice: a
 * file of authorities helps neither against a wrong name nor against an expired
 * date. The message is the only common information, because fetch keeps no
 * libcurl error codes. The texts are OpenSSL's and have been stable for long.
 */

/* A rejected certificate. */
enum trust { TRUST_SIGNER, TRUST_NAME, TRUST_ENDED, TRUST_EARLY };
enum trust trust_of(const char *said);

/* A handshake that failed earlier. */
enum handshake {
    HANDSHAKE_OTHER,
    HANDSHAKE_PLAIN, /* the response is not TLS */
    HANDSHAKE_CUT,   /* the connection ended without a response */
};
enum handshake handshake_of(const char *said);

#endif
