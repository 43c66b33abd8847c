"""Certificates for tests, made with the openssl command as users do it, and
clients that speak TLS.

    certs = Certs(folder)
    cert, key = certs.make("box", "DNS:localhost,IP:127.0.0.1")
    with tls_connect(address, ca=cert) as peer:
        peer.send(request("GET", "/healthz"))
        print(peer.response().status)
"""
import os
import socket
import ssl
import subprocess

from signalbox import DEADLINE_S, Peer

HERE = "DNS:localhost,IP:127.0.0.1"


def openssl(*args, **more):
    return subprocess.run(["openssl", *args], check=True, timeout=DEADLINE_S,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **more).stdout


class Certs:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, san=HERE, days=90, *more):
        """NAME.pem and NAME.key, signed by itself; replaced in one step."""
        cert, key = self.path(name + ".pem"), self.path(name + ".key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
                "-subj", "/CN=" + name, "-addext", "subjectAltName=" + san,
                "-keyout", key + ".new", "-out", cert + ".new", *more)
        os.rename(key + ".new", key)
        os.rename(cert + ".new", cert)
        return cert, key

    def make_expired(self, name, san=HERE):
        """The same, over since yesterday."""
        cert, key = self.make(name, san)
        asked, names = self.path(name + ".csr"), self.path(name + ".ext")
        with open(names, "w", encoding="utf-8") as f:
            f.write("subjectAltName=" + san)
        openssl("req", "-new", "-key", key, "-subj", "/CN=" + name, "-out",
                asked)
        openssl("x509", "-req", "-in", asked, "-signkey", key, "-days", "-1",
                "-extfile", names, "-out", cert)
        return cert, key


def context(ca=None, version=None):
    """Trusts the certificates in the file alone; without one, everybody."""
    made = ssl.create_default_context(cafile=ca)
    if not ca:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    return made


def tls_connect(address, ca=None, name="localhost", version=None, rcvbuf=None):
    sock = socket.socket()
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.settimeout(DEADLINE_S)
    try:
        sock.connect(address)
        return Peer(context(ca, version).wrap_socket(sock,
                                                     server_hostname=name))
    except BaseException:
        sock.close()
        raise


def names_of(peer):
    """The names in the certificate that the server showed, trusted or not."""
    der = peer.socket.getpeercert(binary_form=True)
    text = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-noout", "-ext",
         "subjectAltName"], input=der, stdout=subprocess.PIPE, check=True,
        timeout=DEADLINE_S).stdout
    return text.decode().split("\n")[1].strip()
