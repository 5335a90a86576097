// Command pstest serves Pub/Sub in memory on 127.0.0.1, with ack deadlines and redelivery, until it is killed.
//
// On another port it tells over HTTP what became of the messages.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// policy answers who may do what: everyone anything, but for publishing where that is denied.
type policy struct {
	*iampb.UnimplementedIAMPolicyServer
	denied string
}

func (p policy) TestIamPermissions(
	_ context.Context, request *iampb.TestIamPermissionsRequest,
) (*iampb.TestIamPermissionsResponse, error) {
	if p.denied == "Publish" {
		return &iampb.TestIamPermissionsResponse{}, nil
	}
	return &iampb.TestIamPermissionsResponse{Permissions: request.Permissions}, nil
}

func main() {
	port := flag.Int("port", 0, "port to listen on; 0 for a free one")
	tally := flag.Int("tally", 0, "port of the tally of all messages")
	denied := flag.String("denied", "", "a method that nobody is permitted to call")
	flag.Parse()
	var options []pstest.ServerReactorOption
	if *denied != "" {
		options = append(options, pstest.WithErrorInjection(*denied, codes.PermissionDenied, "User not authorized."))
	}
	server := pstest.NewServerWithCallback(*port, func(server *grpc.Server) {
		iampb.RegisterIAMPolicyServer(server, policy{denied: *denied})
	}, options...)
	defer server.Close()
	fmt.Println(server.Addr)
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		var published, delivered, acknowledged int
		for _, message := range server.Messages() {
			published++
			delivered += message.Deliveries
			if message.Acks > 0 {
				acknowledged++
			}
		}
		counts := map[string]int{"published": published, "delivered": delivered, "acknowledged": acknowledged}
		if err := json.NewEncoder(answer).Encode(counts); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *tally), nil))
}
