// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// authenticated puts what a kube-apiserver does before its API in front of one: the public paths
// that answer everybody, and the client certificate that all others need.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates
func (w *workload) authenticated(api http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		switch in.URL.Path {
		case "/readyz", "/livez", "/healthz":
			fmt.Fprint(out, "ok")
			return
		case "/version":
			writeJSON(out, http.StatusOK, w.versionInfo())
			return
		}
		if !w.knows(in) {
			writeJSON(out, http.StatusUnauthorized, metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Message: "Unauthorized",
				Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized,
			})
			return
		}
		api.ServeHTTP(out, in)
	})
}

// knows tells whether the request came with a client certificate of the cluster's CA.
func (w *workload) knows(in *http.Request) bool {
	if in.TLS == nil || len(in.TLS.PeerCertificates) == 0 {
		return false
	}
	w.mutex.RLock()
	roots := w.clientCA
	w.mutex.RUnlock()
	if roots == nil {
		return false
	}
	between := x509.NewCertPool()
	for _, certificate := range in.TLS.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := in.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

func (w *workload) versionInfo() version.Info {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	info := version.Info{GitVersion: w.version, Platform: "linux/amd64"}
	_, _ = fmt.Sscanf(w.version, "v%1s.%2s", &info.Major, &info.Minor)
	return info
}

func writeJSON(out http.ResponseWriter, code int, body any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(body) // a client that has gone needs no answer
}
