CREATE TABLE "catalog"."provider_history" (
	"provider_id" text collate "C" NOT NULL,
	"rid" bigint NOT NULL,
	"capability_id" smallint NOT NULL,
	"version" text NOT NULL,
	"attributes" jsonb DEFAULT '{}' NOT NULL,
	"capacity" jsonb,
	"priority" integer NOT NULL,
	"expires_at" timestamp with time zone,
	"last_command_id" uuid,
	"rev" integer NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	CONSTRAINT "provider_history_provider_id_rev_pk" PRIMARY KEY("provider_id","rev")
);
--> statement-breakpoint
ALTER TABLE "catalog"."provider" ADD COLUMN "valid_from" timestamp with time zone DEFAULT '-infinity' NOT NULL;--> statement-breakpoint
CREATE INDEX "provider_history_rid" ON "catalog"."provider_history" USING btree ("rid","valid_from");--> statement-breakpoint
CREATE INDEX "provider_history_capability" ON "catalog"."provider_history" USING btree ("capability_id","valid_from");--> statement-breakpoint
CREATE INDEX "provider_history_to" ON "catalog"."provider_history" USING btree ("valid_to");