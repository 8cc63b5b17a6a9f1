import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * Runs one node of OpenSearch on a free port of loopback, with its data in the folder of the first argument. Prints the
 * address. Ends with its standard input.
 */
class OpenSearch {
    /** A node with a plugin from the class path. */
    static class HttpNode extends Node {
        HttpNode(Settings settings) {
            super(
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node"),
                List.of(Netty4Plugin.class),
                false
            );
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("cluster.name", "test")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.type", "netty4")
            .put("http.port", "0")
            .put("transport.type", "netty4")
            .put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Node node = new HttpNode(settings).start();
        HttpServerTransport http = node.injector().getInstance(HttpServerTransport.class);
        System.out.println(http.boundAddress().publishAddress());
        while (System.in.read() >= 0) {
        }
        node.close();
    }
}
