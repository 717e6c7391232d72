//! What operators and load balancers ask, and what is not for the public.

use crate::rig::Rig;

#[testkit::test]
async fn both_ports_tell_of_their_health(rig: &Rig) {
    let _client = rig.node.client().await;
    for base in [format!("http://{}", rig.node.address), rig.node.name.clone()] {
        for path in ["/health", "/__heartbeat__"] {
            let (status, health) = rig.node.see(format!("{base}{path}")).await;
            assert_eq!((status.as_u16(), &health["status"]), (200, &"OK".into()));
            assert_eq!(health["connections"], 1);
        }
        for (path, status) in [
            ("/status", 200),
            ("/__lbheartbeat__", 200),
            ("/__version__", 200),
            ("/v1/err/crit", 418),
            ("/__error__", 418),
            ("/nothing", 404),
        ] {
            assert_eq!(rig.node.see(format!("{base}{path}")).await.0, status, "{path}");
        }
    }
}

#[testkit::test]
async fn the_public_port_takes_no_messages(rig: &Rig) {
    let client = rig.node.client().await;
    for route in ["push", "notif"] {
        let path = format!("/{route}/{}", client.uaid.simple());
        let public = format!("http://{}{path}", rig.node.address);
        assert_eq!(rig.node.put_at(public).await, 404);
    }
    assert_eq!(rig.node.notify(&client).await, 200);
}

#[testkit::test]
async fn who_asks_for_no_web_socket_is_told_so(rig: &Rig) {
    let (status, _) = rig.node.see(format!("http://{}/", rig.node.address)).await;
    assert_eq!(status, 426);
}
