// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	nodesPath   = "/api/v1/nodes"
	rolePrefix  = "node-role.kubernetes.io/"
	tableAccept = "as=Table"
)

// tables answers `kubectl get nodes` with the columns of a real API server; the in-memory one
// makes no tables, and kubectl then shows names only.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
func tables(api http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		name, one := strings.CutPrefix(in.URL.Path, nodesPath+"/")
		nodes := in.URL.Path == nodesPath || one && !strings.Contains(name, "/")
		if in.Method != http.MethodGet || !nodes || in.URL.Query().Get("watch") == "true" ||
			!strings.Contains(in.Header.Get("Accept"), tableAccept) {
			api.ServeHTTP(out, in)
			return
		}
		plain := in.Clone(in.Context())
		plain.Header.Set("Accept", "application/json")
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, plain)
		table, err := nodeTable(answer.Body.Bytes(), one, time.Now())
		if answer.Code != http.StatusOK || err != nil {
			out.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			out.WriteHeader(answer.Code)
			_, _ = out.Write(answer.Body.Bytes())
			return
		}
		writeJSON(out, http.StatusOK, table)
	})
}

// nodeTable turns the JSON of one Node or of a NodeList into the table that kubectl prints.
func nodeTable(body []byte, one bool, now time.Time) (*metav1.Table, error) {
	list := corev1.NodeList{Items: make([]corev1.Node, 1)}
	var err error
	if one {
		err = json.Unmarshal(body, &list.Items[0])
	} else {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta:          list.ListMeta,
		ColumnDefinitions: nodeColumns(),
	}
	for _, node := range list.Items {
		table.Rows = append(table.Rows, nodeRow(node, now))
	}
	return table, nil
}

func nodeColumns() []metav1.TableColumnDefinition {
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, name := range []string{"Status", "Roles", "Age", "Version"} {
		columns = append(columns, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, name := range []string{"Internal-IP", "OS-Image", "Container-Runtime"} {
		columns = append(columns, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: 1})
	}
	return columns
}

func nodeRow(node corev1.Node, now time.Time) metav1.TableRow {
	status := "Unknown"
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			status = "NotReady"
			if condition.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for label := range node.Labels {
		if role, ok := strings.CutPrefix(label, rolePrefix); ok && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	address := ""
	for _, known := range node.Status.Addresses {
		if known.Type == corev1.NodeInternalIP {
			address = known.Address
		}
	}
	meta := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
		ObjectMeta: node.ObjectMeta,
	}
	return metav1.TableRow{
		Cells: []any{
			node.Name, status, orNone(strings.Join(roles, ",")),
			duration.HumanDuration(now.Sub(node.CreationTimestamp.Time)), node.Status.NodeInfo.KubeletVersion,
			orNone(address), node.Status.NodeInfo.OSImage, node.Status.NodeInfo.ContainerRuntimeVersion,
		},
		Object: runtime.RawExtension{Object: &meta},
	}
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
