// Command pstest serves Pub/Sub in memory on 127.0.0.1, with ack deadlines and redelivery, until it is killed.
package main

import (
	"flag"
	"fmt"

	"cloud.google.com/go/pubsub/pstest"
)

func main() {
	port := flag.Int("port", 0, "port to listen on; 0 for a free one")
	flag.Parse()
	server := pstest.NewServerWithPort(*port)
	defer server.Close()
	fmt.Println(server.Addr)
	select {}
}
