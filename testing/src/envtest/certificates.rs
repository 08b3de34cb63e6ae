//! Keys and certificates of one control plane: its certificate authority, the serving certificate, the administrator's
//! client certificate, and the key that signs service account tokens. They are generated at each start and stay in the
//! control plane's folder.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::Error;

/// A certificate and its private key, both PEM.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The certificates and keys that kube-apiserver and its administrator need.
#[derive(Debug)]
pub(super) struct Certificates {
    /// Certificate of the authority that signed the server's and the administrator's, PEM.
    pub(super) authority: String,
    pub(super) server: Pair,
    pub(super) admin: Pair,
    /// Private key that signs service account tokens, PEM. ECDSA P-256, because RSA keys take long to generate.
    pub(super) service_account_key: String,
    /// Its public key, PEM.
    pub(super) service_account_public_key: String,
}

impl Certificates {
    pub(super) fn generate() -> Result<Self, Error> {
        generate_certificates()
            .map_err(|err| Error::new(format!("cannot generate certificates for the API server: {err}")))
    }
}

fn generate_certificates() -> Result<Certificates, rcgen::Error> {
    let authority = create_authority()?;
    let mut server = CertificateParams::new(["127.0.0.1", "localhost"].map(String::from))?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    // RBAC allows this group everything.
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let service_account = KeyPair::generate()?;
    Ok(Certificates {
        authority: authority.pem(),
        server: sign_pair(server, &authority)?,
        admin: sign_pair(admin, &authority)?,
        service_account_key: service_account.serialize_pem(),
        service_account_public_key: service_account.public_key_pem(),
    })
}

fn create_authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "envtest");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn sign_pair(
    params: CertificateParams,
    authority: &CertifiedIssuer<'_, KeyPair>,
) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
