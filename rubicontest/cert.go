package rubicontest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// certificates are what a TLS server can show. They live in memory only.
type certificates struct {
	root      *x509.Certificate // what clients are told to trust
	good      tls.Certificate
	untrusted tls.Certificate // for the right host, by another authority
	elsewhere tls.Certificate // by the right authority, for another host
}

// newCertificates makes a server's certificates.
func newCertificates() *certificates {
	known, unknown := newAuthority("rubicontest"), newAuthority("rubicontest, not trusted")
	return &certificates{
		root:      known.cert,
		good:      known.issue([]string{"localhost"}, net.IPv4(127, 0, 0, 1), net.IPv6loopback),
		untrusted: unknown.issue([]string{"localhost"}, net.IPv4(127, 0, 0, 1), net.IPv6loopback),
		elsewhere: known.issue([]string{"elsewhere.invalid"}),
	}
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes an authority with a certificate of its own.
func newAuthority(name string) authority {
	key := newKey()
	t := template(name)
	t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign
	return authority{cert: sign(t, t, key, key), key: key}
}

// issue makes a server certificate for the names and addresses.
func (a authority) issue(names []string, ips ...net.IP) tls.Certificate {
	key := newKey()
	t := template("rubicontest server")
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames, t.IPAddresses = names, ips
	cert := sign(t, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// template returns what all certificates have in common.
func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), BasicConstraintsValid: true,
	}
}

// newKey returns a new private key.
func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	return key
}

// sign returns t for key, signed by parent's key.
func sign(t, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, parentKey)
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic("rubicontest: " + err.Error())
	}
	return cert
}
