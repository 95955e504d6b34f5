"""The server of the Model Context Protocol, asked by the SDK's own client."""
