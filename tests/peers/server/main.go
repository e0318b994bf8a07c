// Server is a node made of the official parts: the COSI runtime's State service on its in-memory
// state, and the MachineService interface, behind mutual TLS. Tests run our client against it.
//
// It writes the talosconfigs `admin` and `reader` into a folder, prints `ready`, and then does what
// lines on its standard input say, answering each with `done`.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/api/v1alpha1"
	siderox509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const clusterName = "official"

func main() {
	folder := flag.String("folder", "", "where to write the talosconfigs")
	flag.Parse()

	if err := run(context.Background(), *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	listener := &cutting{Listener: tcp}

	bundle, err := secrets.NewBundle(secrets.NewClock(), nil)
	if err != nil {
		return err
	}

	for name, r := range map[string]role.Role{"admin": role.Admin, "reader": role.Reader} {
		if err = writeTalosconfig(filepath.Join(folder, name), tcp.Addr().String(), bundle, r); err != nil {
			return err
		}
	}

	tlsConfig, err := serverTLS(bundle)
	if err != nil {
		return err
	}

	n, err := newNode(ctx, bundle)
	if err != nil {
		return err
	}

	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tlsConfig)),
		grpc.UnaryInterceptor(checkUnary),
		grpc.StreamInterceptor(checkStream),
	)
	machine.RegisterMachineServiceServer(server, n)
	v1alpha1.RegisterStateServer(server, n.state)

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	fmt.Println("ready")

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err = n.obey(ctx, listener, strings.Fields(lines.Text())); err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}

		fmt.Println("done")
	}

	server.Stop()

	if err = <-failed; errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}

	return errors.Join(lines.Err(), err)
}

func writeTalosconfig(file, endpoint string, bundle *secrets.Bundle, r role.Role) error {
	pair, err := bundle.GenerateTalosAPIClientCertificate(role.MakeSet(r))
	if err != nil {
		return err
	}

	return clientconfig.NewConfig(clusterName, []string{endpoint}, bundle.Certs.OS.Crt, pair).Save(file)
}

// serverTLS makes what a node's apid has: a certificate for its address, and clients' must be ours.
func serverTLS(bundle *secrets.Bundle) (*tls.Config, error) {
	ca, err := siderox509.NewCertificateAuthorityFromCertificateAndKey(bundle.Certs.OS)
	if err != nil {
		return nil, err
	}

	pair, err := siderox509.NewKeyPair(ca,
		siderox509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}),
		siderox509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}),
	)
	if err != nil {
		return nil, err
	}

	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(bundle.Certs.OS.Crt)

	return &tls.Config{
		Certificates: []tls.Certificate{*pair.Certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// input describes the cluster of the node's machine configuration.
func input(bundle *secrets.Bundle) (*generate.Input, error) {
	return generate.NewInput(clusterName, "https://127.0.0.1:6443", "1.34.0",
		generate.WithSecretsBundle(bundle), generate.WithInstallDisk("/dev/sda"))
}

// cutting is a listener that can break all connections it accepted.
type cutting struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func (l *cutting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.conns = append(l.conns, conn)

	return conn, nil
}

func (l *cutting) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, conn := range l.conns {
		conn.Close()
	}

	l.conns = nil
}
